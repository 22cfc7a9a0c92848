"""Turns public claims and questions into the files that refine.py reads.

python public.py --raw FOLDER --squad SQUAD2 --out PUBLIC

FOLDER has the files named in SOURCES as their projects publish them; a file that is not there is left out. What is written:
claims-NAME.jsonl with title, text, claim and label (supported, contradicted, not_mentioned, or `wrong` if it is not known which of
the two), and qa-NAME.jsonl with title, text, question and answers (phrases of the text; none if the text does not answer).
SQUAD2 has the articles that are tests: no question about them and no sentence from them is written.
"""
import argparse
import collections
import csv
import gzip
import json
import os
import random
import re

from prepare import lines
from text import plain

TEST_ARTICLES = {"French_and_Indian_War", "Imperialism", "Warsaw"}
# name: files, license
SOURCES = {
    "fever": ("fever-dev.raw.input0 fever-dev.raw.input1 fever-dev.label", "CC BY-SA 3.0"),
    "fever-symmetric": ("symmetric_v0.1-fever_symmetric_full.jsonl symmetric_v0.2-fever_symmetric_dev.jsonl symmetric_v0.2-fever_symmetric_test.jsonl", "CC BY-SA 3.0"),
    "foolmetwice": ("foolmetwice-dev.jsonl foolmetwice-test.jsonl", "Apache-2.0, text CC BY-SA 3.0"),
    "mnli": ("mnli-dev.csv", "OANC, CC BY-SA 3.0, CC BY 3.0, public domain"),
    "snli": ("snli-dev.csv", "CC BY-SA 4.0"),
    "cad-snli": ("cad-train.tsv cad-dev.tsv cad-test.tsv", "Apache-2.0, text CC BY-SA 4.0"),
    "scitail": ("scitail-dev.csv", "Apache-2.0"),
    "infotabs": ("infotabs_train.tsv infotabs-tables", "Apache-2.0, text CC BY-SA"),
    "wice-partial": ("wice-partial-train.jsonl", "ODC-BY, text CC BY-SA"),
    "folio": ("folio-train.jsonl", "CC BY-SA 4.0"),
    "evidence-inference": ("ei-prompts.csv ei-annotations.csv", "MIT"),
    "pubmedqa": ("pubmedqa.json", "MIT"),
    "squad": ("squad-train-subset.json squad-dev-small.json", "CC BY-SA 4.0"),
    "xquad-en": ("xquad.en.json", "CC BY-SA 4.0"),
    "qnli": ("qnli-dev.csv", "CC BY-SA 4.0"),
    "selqa": ("selqa-dev.json selqa-test.json", "Apache-2.0, text CC BY-SA"),
    "clapnq": ("clapnq-answerable.jsonl clapnq-unanswerable.jsonl", "Apache-2.0, text CC BY-SA 3.0"),
    "qed-nq": ("qed-dev.jsonlines", "CC BY-SA 3.0"),
    "nq-open": ("nq-open-oracle.jsonl.gz", "MIT, text CC BY-SA 3.0"),
    "covidqa": ("covidqa.json", "Apache-2.0, text CC BY"),
}
NLI = {"entailment": "supported", "contradiction": "contradicted", "neutral": "not_mentioned", "not_entailment": "not_mentioned", "entails": "supported",
       "E": "supported", "C": "contradicted", "N": "not_mentioned", "SUPPORTS": "supported", "REFUTES": "contradicted",
       "True": "supported", "False": "contradicted", "Uncertain": "not_mentioned", "Unknown": "not_mentioned"}


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
    return csv.DictReader(open(path, newline=""), delimiter=separator, quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE)


def shuffled(items, key):
    items = list(dict.fromkeys(items))
    random.Random(key).shuffle(items)
    return items


class Claims:
    """One function a source: files in, claims out."""

    def fever(self, evidence, said, labels):
        for text, c, label in zip(open(evidence), open(said), open(labels)):
            yield claim(natural(text), natural(c), "supported" if label.strip() == "entailment" else "contradicted")

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

    mnli = snli = cad_snli = scitail = pairs

    def infotabs(self, path, tables):
        for r in rows(path, "\t"):
            table = json.load(open(f"{tables}/{r['table_id']}.json"))
            title = " ".join(table.pop("title", [""]))
            text = "\n".join(f"| {key} | {', '.join(values)} |" for key, values in table.items())
            yield claim(text, r["hypothesis"].strip(), NLI[r["label"]], title)

    def wice_partial(self, path):
        for r in lines(path):
            at = sorted({k for group in r["supporting_sentences"] for k in (group if isinstance(group, list) else [group])})
            if at:
                near = sorted({k for x in at[:6] for k in range(max(0, x - 2), min(len(r["evidence"]), x + 3))})
                yield claim("\n".join(r["evidence"][k] for k in near), r["claim"], "wrong")

    def folio(self, path):
        for r in lines(path):
            premises = r["premises"] if isinstance(r["premises"], list) else r["premises"].split("\n")
            yield claim("\n".join(premises), r["conclusion"], NLI[r["label"]])

    def evidence_inference(self, prompts, annotations):
        """Effects in clinical trials, written as sentences; the two other directions are wrong."""
        known = {r["PromptID"]: r for r in rows(prompts)}
        forms = {"significantly increased": ["{I} increases {O} compared with {C}.", "{O} was higher with {I} than with {C}."],
                 "significantly decreased": ["{I} reduces {O} compared with {C}.", "{O} was lower with {I} than with {C}."],
                 "no significant difference": ["{I} and {C} do not differ significantly in {O}.", "{I} has no significant effect on {O} compared with {C}."]}
        seen = set()
        for r in rows(annotations):
            prompt, evidence = known.get(r["PromptID"]), re.sub(r"\s+", " ", r["Annotations"]).strip()
            if not prompt or r["Label"] not in forms or not 8 <= len(evidence.split()) <= 160 or (r["PromptID"], r["Label"]) in seen:
                continue
            seen.add((r["PromptID"], r["Label"]))
            rng = random.Random(r["PromptID"])
            parts = {"I": prompt["Intervention"].strip(), "C": prompt["Comparator"].strip(), "O": prompt["Outcome"].strip()}
            if sum(len(p.split()) for p in parts.values()) > 40:
                continue
            for said in (r["Label"], rng.choice([f for f in forms if f != r["Label"]])):
                text = rng.choice(forms[said]).format(**parts)
                yield claim(evidence, text[0].upper() + text[1:], "supported" if said == r["Label"] else "contradicted")

    def pubmedqa(self, path):
        """What the authors of an abstract concluded."""
        found = json.load(open(path))
        for key, r in found.items():
            conclusion = re.split(r"(?<=[.!?])\s+(?=[A-Z])", r["LONG_ANSWER"].strip())[0]
            if 6 <= len(conclusion.split()) <= 45:
                yield claim("\n".join(r["CONTEXTS"]), conclusion, "supported", r["QUESTION"])


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
        for r in rows(path):
            if not any(plain(r["hypothesis"])[:60] in text for text in self.test):
                yield {"title": "", "text": r["hypothesis"], "question": r["premise"], "answers": [r["hypothesis"]] if r["label"] == "entailment" else []}

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

    def nq_open(self, path):
        for line in gzip.open(path, "rt"):
            r = json.loads(line)
            c = r["ctxs"][0]
            text = c["text"][:c["text"].rfind(".") + 1] or c["text"]
            if any(plain(a) in plain(text) for a in r["answers"]):
                yield {"title": c["title"], "text": text, "question": r["question"], "answers": r["answers"]}

    def covidqa(self, path):
        """Articles are long: each question gets the sentences around its answer."""
        for article in json.load(open(path))["data"]:
            for p in article["paragraphs"]:
                text = p["context"]
                if not re.search(r"License: ?cc-by\b(?!-)", text[:3000]):
                    continue
                title = text.split("\n")[0][:150]
                for q in p["qas"]:
                    for a in q["answers"][:1]:
                        begin = max(text.rfind("\n", 0, max(0, a["answer_start"] - 500)), text.rfind(". ", 0, max(0, a["answer_start"] - 500))) + 1
                        end = text.find(". ", min(len(text), a["answer_start"] + len(a["text"]) + 400))
                        yield {"title": title, "text": re.sub(r"\s+", " ", text[begin:end + 1 if end > 0 else None]).strip(), "question": q["question"], "answers": [a["text"]]}


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
