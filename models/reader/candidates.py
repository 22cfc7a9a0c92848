"""Finds the 30 best passages of the hybrid search for the questions about held-out books.

python candidates.py --data PREPARED --embedder model.onnx --tokenizer tokenizer.json --out candidates.json

train.py does the same for all books; this needs only the books of the validation and, with --reading, those of the test.
"""
import argparse
import gzip
import json

import torch

from samples import Material
from text import Coder
from train import Reader, load_embedder, neighbours


def main():
    p = argparse.ArgumentParser()
    for name in ("data", "embedder", "tokenizer", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--reading", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(1)
    data = json.load(gzip.open(a.data + "/train.json.gz", "rt"))
    evaluation = json.load(gzip.open(a.data + "/eval.json.gz", "rt"))
    asked = {name for part in ["questions", "written_questions"] + ["reading"] * a.reading for name, found in evaluation[part].items() if found}
    data = {"books": {name: b for name, b in data["books"].items() if name in asked}, "claims": [], "squad": [], "questions": {}}
    model = Reader(*load_embedder(a.embedder)).eval()
    found, _ = neighbours(model, Material(data, Coder(a.tokenizer)), data, evaluation)
    json.dump(found, open(a.out, "w"))
    print(len(found), "questions")


if __name__ == "__main__":
    main()
