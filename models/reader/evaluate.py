"""Measures a reader on held-out books and on the test sets.

python evaluate.py --model model.onnx --tokenizer tokenizer.json --data PREPARED --candidates candidates.json [--only pairs,squad] [--wice 100]

candidates.json (written by train.py) holds for every question the 30 best passages of the hybrid search.
The same functions score the network while it is trained; they need a `run` that maps a list of (ids, marks) to a list of
dictionaries with rank, answerable, units (one number per marker) and support (three probabilities).
"""
import argparse
import gzip
import json
import re
import time

import numpy as np

from text import Coder, assemble

MIX = 10  # weight of the hybrid score (0 to 1) beside the logit `rank`
LABELS = ["supported", "contradicted", "not_mentioned"]


def auroc(scores, labels):
    """Chance that a right one scores above a wrong one; ties count half."""
    scores, labels = np.asarray(scores, float), np.asarray(labels, bool)
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ordered = scores[order]
    at = 0
    while at < len(ordered):
        end = at
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[at]:
            end += 1
        ranks[order[at:end + 1]] = (at + end) / 2 + 1
        at = end + 1
    good, bad = labels.sum(), (~labels).sum()
    return float((ranks[labels].sum() - good * (good + 1) / 2) / (good * bad)) if good and bad else float("nan")


def best_cut(scores, labels):
    """The threshold with the best balanced accuracy."""
    scores, labels = np.asarray(scores), np.asarray(labels, bool)
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, 101)))
    both = [((scores[labels] >= c).mean() + (scores[~labels] < c).mean()) / 2 for c in cuts]
    k = int(np.argmax(both))
    return float(cuts[k]), float(both[k])


class Coded:
    """Encodes with a memory, as the same passages come again and again."""

    def __init__(self, coder):
        self.coder, self.known = coder, {}

    def units(self, units):
        return [self.piece(" " + u) for _, u in units]

    def piece(self, text):
        if text not in self.known:
            self.known[text] = self.coder.plain(text)
        return self.known[text]

    def __call__(self, query, heading, units):
        return assemble(self.piece(query), self.piece(heading + "\n"), self.units(units))


def content(text):
    return set(re.findall(r"[a-z0-9_]{3,}", text.lower()))


def claims(run, coded, entries):
    """Validation claims: entries with a heading, units and several claims."""
    inputs, labels, kinds, shares = [], [], [], []
    for e in entries:
        whole = content(" ".join(u for _, u in e["units"]))
        for text, label, kind in e["claims"]:
            inputs.append(coded(text, e["heading"], e["units"]))
            labels.append(LABELS.index(label))
            kinds.append(kind if label == "supported" else "not " + kind)
            shares.append(len(content(text) & whole) / max(1, len(content(text))))
    out = run(inputs)
    p = np.array([o["support"] for o in out])
    labels = np.array(labels)
    right = labels == 0
    cut, balanced = best_cut(p[:, 0], right)
    shown = {k: (round(float(p[[i for i, x in enumerate(kinds) if x == k], 0].mean()), 3), kinds.count(k)) for k in sorted(set(kinds))}
    flagged = p[:, 0] >= .5
    # The hard half: right claims in other words against wrong claims in the words of the passage.
    shares = np.array(shares)
    middle = np.median(shares)
    hard = (right & (shares <= middle)) | (~right & (shares >= middle))
    return {"auroc": auroc(p[:, 0], right), "hard_auroc": auroc(p[hard, 0], right[hard]), "three_way": float((p.argmax(1) == labels).mean()), "accuracy_at_half": float((flagged == right).mean()),
            "best_cut": cut, "balanced_at_best": balanced, "mean_supported_by_kind": shown,
            "precision_recall": {str(c): [round(float(right[p[:, 0] >= c].mean()), 3), round(float((p[right, 0] >= c).mean()), 3)]
                                 for c in (.3, .5, .7, .8, .9) if (p[:, 0] >= c).any()}}


def windows(coded, claim, heading, units, room=280):
    """A long page in pieces that fit."""
    found, now, size = [], [], 0
    for unit in units:
        n = len(coded.piece(" " + unit[1]))
        if now and size + n > room:
            found.append(now)
            now, size = [], 0
        now.append(unit)
        size += n + 1
    if now:
        found.append(now)
    return [coded(claim, heading, w) for w in found]


def support(run, coded, entries):
    """A test set of claims: the best window of the page counts."""
    inputs, owner = [], []
    for k, e in enumerate(entries):
        for w in windows(coded, e["claim"], e["heading"], e["units"]):
            inputs.append(w)
            owner.append(k)
    out = run(inputs)
    best, flat = np.zeros(len(entries)), np.full(len(entries), -1.)
    for o, k in zip(out, owner):
        best[k] = max(best[k], o["support"][0])
    labels = np.array([e["label"] for e in entries], bool)
    cut, balanced = best_cut(best, labels)
    return {"auroc": auroc(best, labels), "n": len(entries), "supported_share": float(labels.mean()), "accuracy_at_half": float(((best >= .5) == labels).mean()),
            "balanced_at_best": balanced, "best_cut": cut}


def squad(run, coded, articles):
    inputs, labels, gold = [], [], []
    for a in articles:
        for q in a["questions"]:
            inputs.append(coded(q["question"], a["title"], a["passages"][q["passage"]]))
            labels.append(bool(q["answers"]))
            gold.append(set(q["units"]))
    out = run(inputs)
    scores = [o["answerable"] for o in out]
    hits = [inputs[k][1][int(np.argmax(o["units"]))][1] in gold[k] for k, o in enumerate(out) if labels[k] and o["units"]]
    cut, balanced = best_cut(scores, labels)
    return {"auroc": auroc(scores, labels), "n": len(labels), "best_unit": float(np.mean(hits)), "best_cut": cut, "balanced_at_best": balanced,
            "auroc_best_unit": auroc([max(o["units"], default=-9) for o in out], labels)}


def reading(run, coded, sets, books, candidates, top=20):
    """Questions over whole books: the order of the hybrid search against the order by rank."""
    tally = {k: [] for k in ("in_top", "hybrid@1", "hybrid@3", "hybrid@5", "rank@1", "rank@3", "rank@5", "mixed@1", "mixed@3", "mixed@5", "best_unit", "best_unit_of_3",
                             "mixed_unit", "first_unit")}
    peak, known, unit_peak = [], [], []
    weights = {w: [] for w in (0, 5, 10, 15, 20, 30, 50)}
    inputs, spans = [], []
    for name, questions in sets.items():
        for q in questions:
            order = [c for c in candidates[q["id"]]][:top]
            spans.append((len(inputs), len(inputs) + len(order), name, q, order))
            inputs += [coded(q["question"], books[name][i]["path"], books[name][i]["units"]) for i, _ in order]
    out = run(inputs)
    for a, b, name, q, order in spans:
        holding = {i: set(u) for i, u in q["holding"]}
        rank = np.array([o["rank"] for o in out[a:b]])
        hybrid = np.array([s for _, s in order])
        by_rank = np.argsort(-rank, kind="stable")
        mixed = np.argsort(-(rank + MIX * hybrid), kind="stable")
        first = out[a + by_rank[0]]
        peak.append(max(out[a + k]["answerable"] for k in by_rank[:5]))
        unit_peak.append(max(max(out[a + k]["units"], default=-9) for k in by_rank[:3]))
        known.append(bool(q["answerable"]))
        if not q["answerable"] or not holding:
            continue
        hit = np.array([i in holding for i, _ in order])
        tally["in_top"].append(hit.any())
        for w, seen in weights.items():
            seen.append(hit[np.argmax(rank + w * hybrid)])
        for name_, ranking in (("hybrid", np.arange(len(order))), ("rank", by_rank), ("mixed", mixed)):
            for n in (1, 3, 5):
                tally[f"{name_}@{n}"].append(hit[ranking[:n]].any())

        def unit_hit(places):
            best = max(((v, k, mark[1]) for k in places for v, mark in zip(out[a + k]["units"], inputs[a + k][1])), default=None)
            return best is not None and best[2] in holding.get(order[best[1]][0], ())
        tally["best_unit"].append(unit_hit(by_rank[:1]))
        tally["best_unit_of_3"].append(unit_hit(by_rank[:3]))
        tally["mixed_unit"].append(unit_hit(mixed[:1]))
        tally["first_unit"].append(unit_hit([0]))
    result = {k: round(float(np.mean(v)), 3) for k, v in tally.items()}
    result["found@1_by_mix"] = {str(w): round(float(np.mean(v)), 3) for w, v in weights.items()}
    result.update(n=len(tally["in_top"]), answerable_auroc=round(auroc(peak, known), 3), unanswerable=int(len(known) - sum(known)),
                  answerable_cut=best_cut(peak, known) if 0 < sum(known) < len(known) else None, unit_auroc=round(auroc(unit_peak, known), 3))
    return result


def everything(run, coder, evaluation, books, candidates, only=None, wice=None):
    coded = Coded(coder)
    parts = {"claims": lambda: claims(run, coded, evaluation["claims"]), "pairs": lambda: support(run, coded, evaluation["pairs"]),
             "scifact": lambda: support(run, coded, evaluation["scifact"]), "wice": lambda: support(run, coded, evaluation["wice"][:wice]),
             "squad": lambda: squad(run, coded, evaluation["squad"]),
             "questions": lambda: reading(run, coded, evaluation["questions"], books, candidates),
             "written_claims": lambda: claims(run, coded, evaluation["written_claims"]),
             "written_questions": lambda: reading(run, coded, evaluation["written_questions"], books, candidates),
             "reading": lambda: reading(run, coded, evaluation["reading"], books, candidates)}
    return {k: f() for k, f in parts.items() if not only or k in only}


def onnx_runner(path, threads=1):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    session = ort.InferenceSession(path, options)

    def run(inputs):
        found = []
        for ids, marks in inputs:
            rank, answerable, units, support = session.run(["rank", "answerable", "units", "support"], {"input_ids": np.array([ids], dtype=np.int64)})
            e = np.exp(support[0] - support[0].max())
            found.append({"rank": float(rank[0]), "answerable": float(answerable[0]), "units": [float(units[0, at]) for at, _ in marks],
                          "support": (e / e.sum()).tolist()})
        return found
    return run


def main():
    p = argparse.ArgumentParser()
    for name in ("model", "tokenizer", "data", "candidates"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--only", default="")
    p.add_argument("--wice", type=int)
    a = p.parse_args()
    evaluation = json.load(gzip.open(a.data + "/eval.json.gz", "rt"))
    books = {k: b["passages"] for k, b in json.load(gzip.open(a.data + "/train.json.gz", "rt"))["books"].items()}
    run = onnx_runner(a.model)
    sample = [((list(range(100, 325))), [])]
    run(sample * 3)
    start = time.process_time()
    run(sample * 20)
    print("ms per passage of 225 tokens", round((time.process_time() - start) * 50, 1), flush=True)
    for part in (a.only.split(",") if a.only else ["claims", "written_claims", "pairs", "squad", "scifact", "questions", "written_questions", "reading", "wice"]):
        print(json.dumps(everything(run, Coder(a.tokenizer), evaluation, books, json.load(open(a.candidates)), [part], a.wice)), flush=True)


if __name__ == "__main__":
    main()
