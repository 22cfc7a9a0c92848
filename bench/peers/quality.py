"""Search quality: nDCG@10 on a question set in the BEIR layout, scored in the same way for all systems.

A set is a folder with `corpus.jsonl.gz`, `queries.jsonl` and `qrels.tsv`. Systems find passages; a page is ranked
where its best passage is.
"""

import json
import math

import processes

# So many passages that ten different pages are among them.
PASSAGES = 100


def ndcg(system, port, folder):
    """The mean over all questions with a relevant page."""
    relevant = read_judgements(folder / "qrels.tsv")
    questions = read_questions(folder / "queries.jsonl")
    scores = []
    for query, gains in relevant.items():
        found = system.pages(processes.ask(system, port, questions[query], PASSAGES))
        scores.append(ndcg_of_one(list(dict.fromkeys(found)), gains))
    return sum(scores) / len(scores)


def ndcg_of_one(pages, gains, depth=10):
    """nDCG of a ranking of distinct pages, best first. `gains` has the relevant pages."""
    ideal = sorted(gains.values(), reverse=True)
    return discounted([gains.get(page, 0) for page in pages[:depth]]) / discounted(ideal[:depth])


def discounted(gains):
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def read_judgements(path):
    relevant = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, page, score = line.split("\t")
        if float(score) > 0:
            relevant.setdefault(query, {})[page] = float(score)
    return relevant


def read_questions(path):
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {record["_id"]: record["text"] for record in records}
