"""Turns public claims and questions into the files that refine.py reads.

python public.py --raw FOLDER --squad SQUAD2 --out PUBLIC

FOLDER has the files named in SOURCES as their projects publish them; a file that is not there is left out. What is written:
claims-NAME.jsonl with title, text, claim and label (supported, contradicted, not_mentioned, or `wrong` if it is not known which of
the two), and qa-NAME.jsonl with title, text, question and answers (phrases of the text; none if the text does not answer).
SQUAD2 has the articles that are tests: no question about them and no sentence from them is written. Not all files come from the
projects themselves: MultiNLI is put together from the copies of nli-data-sanity-check (MIT), WikiFactCheck-English are the five parts in the
CANNOT dataset, joined; squad-dev-part has 16 articles of the development part, squad-train-subset ten of the training part.
"""
import argparse
import collections
import csv
import glob
import gzip
import json
import os
import random
import re
from xml.etree import ElementTree

import rules
from prepare import lines
from text import plain

TEST_ARTICLES = {"French_and_Indian_War", "Imperialism", "Warsaw"}
# name: files, license
SOURCES = {
    "fever-symmetric": ("symmetric_v0.1-fever_symmetric_full.jsonl symmetric_v0.2-fever_symmetric_dev.jsonl symmetric_v0.2-fever_symmetric_test.jsonl", "CC BY-SA 3.0"),
    "foolmetwice": ("foolmetwice-dev.jsonl foolmetwice-test.jsonl", "Apache-2.0, text CC BY-SA 3.0"),
    "mnli": ("mnli-CONJ.tsv mnli-NUM.tsv mnli-PRON.tsv mnli-DET.tsv", "OANC, CC BY-SA 3.0, CC BY 3.0, public domain"),
    "negation": ("negation-mnli.txt negation-snli.txt", "MIT, text as MultiNLI and SNLI (CC BY-SA 4.0)"),
    "conjnli": ("conjnli-conj_dev.tsv conjnli-adversarial_train_15k.tsv", "MIT, text CC BY-SA 3.0"),
    "breaking-nli": ("breaking-nli.jsonl", "CC BY-SA 4.0"),
    "cad-snli": ("cad-train.tsv cad-dev.tsv cad-test.tsv", "Apache-2.0, text CC BY-SA 4.0"),
    "paws": ("paws-dev.tsv paws-test.tsv", "free for any use, text CC BY-SA 3.0"),
    "wikifactcheck": ("wikifactcheck.tsv", "CC BY-SA 4.0"),
    "wice-partial": ("wice-partial-train.jsonl", "ODC-BY, text as published"),
    "tabfact": ("tabfact-pairs.json tabfact-pages.json tabfact-csv", "CC BY 4.0, text CC BY-SA"),
    "semtabfacts": ("semtabfacts", "not confirmed; tables of open-access articles"),
    "squad-claims": ("squad-train-subset.json squad-dev-part.json", "CC BY-SA 4.0"),
    "squad": ("squad-train-subset.json squad-dev-part.json", "CC BY-SA 4.0"),
    "xquad-en": ("xquad.en.json", "CC BY-SA 4.0"),
    "qnli": ("qnli-dev.tsv", "CC BY-SA 4.0"),
    "selqa": ("selqa-dev.json selqa-test.json", "Apache-2.0, text CC BY-SA"),
    "clapnq": ("clapnq-answerable.jsonl clapnq-unanswerable.jsonl", "Apache-2.0, text CC BY-SA 3.0"),
    "qed-nq": ("qed-dev.jsonlines", "CC BY-SA 3.0"),
}
NLI = {"entailment": "supported", "contradiction": "contradicted", "neutral": "not_mentioned", "entailed": "supported", "refuted": "contradicted",
       "unknown": "not_mentioned", "SUPPORTS": "supported", "REFUTES": "contradicted"}


def natural(text):
    """Undoes the tokens of a treebank."""
    for mark, sign in (("-LRB-", "("), ("-RRB-", ")"), ("-LSB-", "["), ("-RSB-", "]"), ("``", '"'), ("''", '"'), (" -- ", " – ")):
        text = text.replace(mark, sign)
    text = re.sub(r" ([,.;:!?%)\]])", r"\1", re.sub(r"([(\[$#]) ", r"\1", text))
    text = re.sub(r" ('s|'re|'ve|'ll|'d|'m|n't|')(?=\W|$)", r"\1", text)
    text = re.sub(r'" ([^"]*?) "', r'"\1"', text)
    return re.sub(r"(?<=\w) - (?=\w)", "-", re.sub(r"\s+", " ", text)).strip()


def claim(text, said, label, title=""):
    return {"title": title, "text": text, "claim": said, "label": label}


def rows(path, separator=","):
    return csv.DictReader(open(path, newline="", errors="replace"), delimiter=separator, quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE)


def shuffled(items, key):
    items = list(dict.fromkeys(items))
    random.Random(key).shuffle(items)
    return items


class Claims:
    """One function a source: files in, claims out."""

    def fever_symmetric(self, *paths):
        for path in paths:
            for r in lines(path):
                yield claim(natural(r.get("evidence_sentence") or r["evidence"]), natural(r["claim"]), NLI[r.get("gold_label") or r["label"]])

    def foolmetwice(self, *paths):
        for path in paths:
            for r in lines(path):
                gold = [natural(e["text"]) for e in r["gold_evidence"]]
                other = [natural(e["text"]) for e in r["retrieved_evidence"] if natural(e["text"]) not in gold][:3]
                title = r.get("wikipedia_page") or r.get("title") or ""
                yield claim("\n".join(shuffled(gold + other, r["id"])), r["text"], NLI[r["label"]], title.replace("_", " "))

    def pairs(self, *paths):
        for path in paths:
            for r in rows(path, "\t" if path.endswith("tsv") else ","):
                one, other, label = (r[a] if a in r else r[b] for a, b in (("premise", "sentence1"), ("hypothesis", "sentence2"), ("label", "gold_label")))
                if label in NLI and len(other.split()) > 2:
                    yield claim(re.sub(r"\s+", " ", one).strip(), other.strip(), NLI[label])

    cad_snli = pairs

    def mnli(self, *paths):
        """Copies of the development part that each lack one kind of word: together they have them all."""
        copies = [{r["index"]: r for r in rows(path, "\t")} for path in paths]
        for key, r in copies[0].items():
            versions = [c[key] for c in copies if key in c]
            one, other = (max((v[name] for v in versions), key=len).strip() for name in ("sentence1", "sentence2"))
            if r["gold_label"] in NLI and len(other.split()) > 2:
                yield claim(natural(one), natural(other), NLI[r["gold_label"]])

    def negation(self, *paths):
        for path in paths:
            for r in rows(path, "\t"):
                yield claim(r["Text"].strip(), r["Hypothesis"].strip(), NLI[r["gold_label"]])

    def conjnli(self, *paths):
        for path in paths:
            for r in csv.DictReader(open(path, newline="", encoding="utf-8-sig"), delimiter="\t"):
                if r["Label"] in NLI:
                    yield claim(r["Premise"].strip(), r["Hypothesis"].strip(), NLI[r["Label"]])

    def breaking_nli(self, path):
        for r in lines(path):
            yield claim(r["sentence1"], r["sentence2"], NLI[r["gold_label"]])

    def paws(self, *paths):
        """Paraphrases, and sentences of the same words that say something else."""
        for path in paths:
            for line in open(path):
                _, one, other, same = line.rstrip("\n").split("\t")
                if same in "01":
                    yield claim(natural(one), natural(other), "supported" if same == "1" else "wrong")

    def wikifactcheck(self, path):
        """Sentences and what people made of them to say the opposite; one in five is also its own claim."""
        for k, line in enumerate(open(path)):
            one, other = line.rstrip("\n").split("\t")[:2]
            if one != "sentence" and one != other and len(one.split()) > 4:
                yield claim(one, other, "contradicted")
                if k % 5 == 0:
                    yield claim(one, one, "supported")

    def tabfact(self, path, pages, tables):
        """Pairs of a right and a wrong statement about small tables."""
        pages = json.load(open(pages))
        for name, right, wrong in json.load(open(path)):
            if not os.path.exists(f"{tables}/{name}"):
                continue
            cells = [line.split("#") for line in open(f"{tables}/{name}") if line.strip()]
            if sum(len(c.split()) for row in cells for c in row) < 170:
                text = "\n".join("| " + " | ".join(c.strip() for c in row) + " |" for row in cells)
                for said, label in ((right, "supported"), (wrong, "wrong")):
                    yield claim(text, natural(said), label, pages.get(name, [""])[0])

    def semtabfacts(self, folder):
        for path in sorted(glob.glob(folder + "/*.xml")):
            for table in ElementTree.parse(path).iter("table"):
                def words(element):
                    return " ".join((element.get("text") or "").split()) if element is not None else ""
                text = "\n".join("| " + " | ".join(words(c) for c in row.iter("cell")) + " |" for row in table.iter("row"))
                if len(text.split()) < 260:
                    for s in table.iter("statement"):
                        if s.get("type") in NLI:
                            yield claim(text, words(s), NLI[s.get("type")], words(table.find("caption")))

    def squad_claims(self, *paths):
        """Questions with an answer as statements; wrong are other answers of the paragraph, and what only seems to answer."""
        for path in paths:
            for article in json.load(open(path))["data"]:
                if article["title"] in TEST_ARTICLES:
                    continue
                for p in article["paragraphs"]:
                    answers = [q["answers"][0]["text"] for q in p["qas"] if q["answers"]]
                    for q in p["qas"]:
                        rng, title = random.Random(q["id"]), article["title"].replace("_", " ")
                        seeming = [a["text"] for a in q.get("plausible_answers", [])[:1]]
                        said = [(a, "wrong") for a in seeming]
                        if q["answers"]:
                            right = q["answers"][0]["text"]
                            others = [a for a in answers if not {plain(w) for w in a.split()} & {plain(w) for x in q["answers"] for w in x["text"].split()}]
                            said = [(right, "supported")] + [(rng.choice(others), "wrong") for _ in others[:1]]
                        for answer, label in said:
                            text = rules.statement(q["question"].strip(), answer)
                            if "?" not in text and ": " not in text:
                                yield claim(p["context"], text, label, title)

    def wice_partial(self, path):
        for r in lines(path):
            at = sorted({k for group in r["supporting_sentences"] for k in (group if isinstance(group, list) else [group])})
            if at:
                near = sorted({k for x in at[:6] for k in range(max(0, x - 2), min(len(r["evidence"]), x + 3))})
                yield claim("\n".join(r["evidence"][k] for k in near), r["claim"], "wrong")


class Questions:
    def __init__(self, test):
        self.test = test

    def squad(self, *paths):
        for path in paths:
            for article in json.load(open(path))["data"]:
                if article["title"] in TEST_ARTICLES:
                    continue
                for p in article["paragraphs"]:
                    for q in p["qas"]:
                        answers = [] if q.get("is_impossible") else sorted({a["text"] for a in q["answers"]})
                        yield {"title": article["title"].replace("_", " "), "text": p["context"], "question": q["question"], "answers": answers}

    xquad_en = squad

    def qnli(self, path):
        """Single sentences of a paragraph: most of them share words with the question and do not answer it."""
        for r in rows(path, "\t"):
            if not any(plain(r["sentence"])[:60] in text for text in self.test):
                yield {"title": "", "text": r["sentence"], "question": r["question"], "answers": [r["sentence"]] if r["label"] == "entailment" else []}

    def selqa(self, *paths):
        for path in paths:
            for r in json.load(open(path)):
                if r["article"].replace(" ", "_") not in TEST_ARTICLES:
                    yield {"title": f"{r['article']} > {r['section']}", "text": "\n".join(r["candidates"]), "question": r["question"],
                           "answers": [r["candidates"][k] for k in r["answers"]]}

    def clapnq(self, *paths):
        for path in paths:
            for r in lines(path):
                p = r["passages"][0]
                chosen = {x for o in r["output"] for x in o.get("selected_sentences") or []}
                if "unanswerable" in path or chosen:
                    yield {"title": p["title"], "text": "\n".join(natural(x) for x in p["sentences"]), "question": r["input"],
                           "answers": [] if "unanswerable" in path else [natural(x) for x in chosen]}

    def qed_nq(self, path):
        for r in lines(path):
            answers = {natural(a["string"]) for found in r["original_nq_answers"] for a in found}
            yield {"title": r["title_text"], "text": natural(r["paragraph_text"]), "question": r["question_text"], "answers": sorted(answers)}


def main():
    p = argparse.ArgumentParser()
    for name in ("raw", "squad", "out"):
        p.add_argument("--" + name, required=True)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    corpus = [json.loads(line) for line in gzip.open(a.squad + "/corpus.jsonl.gz", "rt")]
    test = [plain(c["text"]) for c in corpus if c["_id"].rsplit("#", 1)[0] in TEST_ARTICLES]
    claims, questions = Claims(), Questions(test)
    for name, (files, license) in SOURCES.items():
        paths = [os.path.join(a.raw, f) for f in files.split()]
        if not all(map(os.path.exists, paths)):
            print("without", name)
            continue
        method = name.replace("-", "_")
        kind = "claims" if hasattr(claims, method) else "qa"
        found = list(getattr(claims if kind == "claims" else questions, method)(*paths))
        found = [r for r in found if r["text"].strip() and len(r["text"].split()) < 420]
        with open(os.path.join(a.out, f"{kind}-{name}.jsonl"), "w") as f:
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in found)
        shares = collections.Counter(r["label"] if kind == "claims" else bool(r["answers"]) for r in found)
        print(f"{kind:7} {name:20} {len(found):6} {dict(shares)} {license}")


if __name__ == "__main__":
    main()
