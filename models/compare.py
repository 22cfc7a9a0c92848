#!/usr/bin/env python3
"""Compare the vectors two embedders made of one corpus. Needs numpy.

usage: compare.py INDEX_A INDEX_B
Both are folders that `docent eval SET --index FOLDER` kept, with another embedder each.
"""
import pathlib, sys

import numpy as np


def vectors(folder):
    folder = pathlib.Path(folder)
    generation = folder / (folder / "CURRENT").read_text().strip()
    return np.fromfile(generation / "vectors.f32", dtype=np.float32).reshape(-1, 384)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cosine = (vectors(sys.argv[1]) * vectors(sys.argv[2])).sum(1)
    print(f"{len(cosine)} vectors: mean cosine {cosine.mean():.4f}, least {cosine.min():.4f}")


if __name__ == "__main__":
    main()
