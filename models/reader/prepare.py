"""Collects the training and evaluation material into two files, train.json.gz and eval.json.gz.

python prepare.py --books BOOKS --questions QUESTIONS --claims CLAIMS --squad SQUAD2 --support SUPPORT \
    --reading READING --scifact-corpus CORPUS.jsonl.gz --indexes INDEXES --out FOLDER [--extra extra.json] [--written written] \
    [--passages passages] [--more BOOK ...] [--most 2000]

INDEXES holds one Docent index per ingested book; a book without one is cut here, roughly, at headings and blank
lines to about 150 words. Nothing of the test sets goes into train.json.gz; passages of the books that share a long
sentence with the claims of the test set are marked `held` so that no rule-made claims are drawn from them.
"""
import argparse
import collections
import glob
import gzip
import html
import html.parser
import json
import math
import os
import random
import re

import snowballstemmer

from text import holding_units, plain, units

VALIDATION_QUESTIONS = ["scrapy", "flask", "debian-handbook", "click"]
VALIDATION_CLAIMS = ["flask", "debian-handbook", "git"]
VALIDATION_WRITTEN = ["written-f", "written-i"]
STEMMER = snowballstemmer.stemmer("english")
STOP = set("""i me my we our you your he him his she her it its they them their what which who whom this that these those am
is are was were be been being have has had having do does did doing a an the and but if or because as until while of at by
for with about against between into through during before after above below to from up down in out on off over under again
further then once here there when where why how all any both each few more most other some such no nor not only own same so
than too very s t can will just don should now""".split())
CACHE = {}


def terms(text):
    found = []
    for run in re.findall(r"[^\W_](?:[\w.\-/:+#@'’]*[^\W_])?", text):
        words = [w for w in re.split(r"[^A-Za-z0-9\u00c0-\uffff]+|(?<=[a-z])(?=[A-Z])", run) if w]
        if len(words) > 1:
            found.append(run.lower())
        for word in words:
            word = word.lower()
            if word not in STOP:
                if word not in CACHE:
                    CACHE[word] = STEMMER.stemWord(word)
                found.append(CACHE[word])
    return found


class Bm25:
    def __init__(self, texts, k1=1.2, b=0.75):
        counts = [collections.Counter(terms(t)) for t in texts]
        self.n, self.k1 = len(texts), k1
        lengths = [sum(c.values()) for c in counts]
        mean = sum(lengths) / max(1, len(lengths))
        self.norm = [k1 * (1 - b + b * n / mean) for n in lengths]
        self.posts = collections.defaultdict(list)
        for i, c in enumerate(counts):
            for term, n in c.items():
                self.posts[term].append((i, n))

    def top(self, query, n):
        scores = collections.defaultdict(float)
        for term in dict.fromkeys(terms(query)):
            posts = self.posts.get(term, ())
            weight = math.log(1 + (self.n - len(posts) + .5) / (len(posts) + .5))
            for i, count in posts:
                scores[i] += weight * count * (self.k1 + 1) / (count + self.norm[i])
        best = sorted(scores.items(), key=lambda x: (-x[1], x[0]))[:n]
        return [[i, round(s, 3)] for i, s in best]


# ---- passages of a book --------------------------------------------------------------------------------------------

def indexed(folder):
    """The passages of a Docent index, in the order of its store."""
    generations = sorted(glob.glob(folder + "/g*"))
    if not generations or not os.path.exists(folder + "/CURRENT"):
        return None
    raw = open(glob.glob(generations[-1] + "/lexical/*.store")[0], "rb").read()
    decoder, found, at = json.JSONDecoder(), [], 0
    while True:
        at = raw.find(b'{"id":"', at)
        if at < 0:
            return found
        depth, j, quoted, escaped = 0, at, False, False
        while True:
            c = raw[j]
            if quoted:
                if escaped:
                    escaped = False
                elif c == 92:
                    escaped = True
                elif c == 34:
                    quoted = False
            elif c == 34:
                quoted = True
            elif c == 123:
                depth += 1
            elif c == 125:
                depth -= 1
                if depth == 0:
                    break
            j += 1
        found.append(decoder.decode(raw[at:j + 1].decode()))
        at = j + 1


def from_markdown(text):
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    blocks, path, fence, lines = [], [], None, []

    def close():
        nonlocal lines
        body = "\n".join(lines).strip("\n")
        if body.strip():
            if not body.lstrip().startswith(("```", "|", "- ", "* ")) and not re.match(r"\s*\d+\. ", body):
                body = re.sub(r"\n(?!\s*([-*] |\d+\. ))\s*", " ", body)
            body = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", body)
            body = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", body)
            body = re.sub(r"\{[a-z:]+\}`([^`]+)`", r"`\1`", body)
            blocks.append((list(path), body))
        lines = []

    for line in text.split("\n"):
        bare = line.strip()
        if fence:
            lines.append(line)
            if bare == fence:
                fence = None
                close()
        elif re.match(r"`{3,}", bare):
            if re.match(r"`{3,}\{(note|admonition|warning|tip|versionadded|versionchanged)", bare):
                continue
            close()
            fence = re.match(r"`{3,}", bare).group(0)
            lines.append(line)
        elif re.match(r"#{1,6} ", line):
            close()
            level = len(line) - len(line.lstrip("#"))
            del path[level - 1:]
            path.extend([""] * (level - 1 - len(path)))
            path.append(bare.lstrip("# ").strip("`"))
        elif not bare:
            close()
        elif not re.match(r":::|<[a-zA-Z/!]|\(.*\)=$", bare):
            lines.append(line)
    close()
    return blocks


def inline_rst(text):
    text = re.sub(r":[a-zA-Z:+-]+:`([^`<]+?)\s*<[^`>]*>`", r"\1", text)
    text = re.sub(r":(?:ref|doc|term|pep|rfc):`([^`]+)`", r"\1", text)
    text = re.sub(r":[a-zA-Z:+-]+:`[~!.]*([^`]+)`", r"`\1`", text)
    text = re.sub(r"`([^`<]+?)\s*<[^`>]*>`_{1,2}", r"\1", text)
    text = re.sub(r"(?<!`)`([^`]+)`_{1,2}", r"\1", text)
    text = text.replace("``", "`")
    return re.sub(r"(\w)__?(?=[\s.,;)])", r"\1", text)


def from_rst(text):
    lines, blocks, path, levels = text.split("\n"), [], [], []
    paragraph, i = [], 0
    skip = re.compile(r"\.\. (toctree|image|figure|index|module|currentmodule|highlight|contents|include|literalinclude|meta|raw|_|"
                      r"\||autoclass|automodule|autofunction|only|default-domain|rubric|sectionauthor)")
    code = re.compile(r"\.\. (code-block|code|sourcecode|console|prompt|parsed-literal)::|\.\. \w*-?code\w*::")

    def close():
        nonlocal paragraph
        if paragraph:
            body = "\n".join(paragraph)
            colon = body.rstrip().endswith("::")
            body = re.sub(r"::\s*$", ":", body.rstrip())
            body = re.sub(r"\n\s*(?![-*] |\d+\. |#\. )", " ", body.strip())
            body = re.sub(r"(?m)^\s*(\*|#\.) ", "- ", inline_rst(body))
            if body.strip() and body.strip() != ":":
                blocks.append((list(path), body))
            paragraph = []
            return colon
        return False

    def indented(i, least):
        taken = []
        while i < len(lines) and (not lines[i].strip() or len(lines[i]) - len(lines[i].lstrip()) > least):
            taken.append(lines[i])
            i += 1
        return taken, i

    while i < len(lines):
        line = lines[i]
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if re.match(r"([=\-~^\"'#*+`:._])\1{2,}\s*$", line) and i + 2 < len(lines) and lines[i + 2].strip() == bare:
            i += 1
            continue
        under = lines[i + 1].strip() if i + 1 < len(lines) else ""
        if bare and indent <= 1 and re.match(r"([=\-~^\"'#*+`:._])\1{2,}$", under) and len(under) >= len(bare) - 1 and not paragraph:
            close()
            if under[0] not in levels:
                levels.append(under[0])
            del path[levels.index(under[0]):]
            path.append(inline_rst(bare).strip("`"))
            i += 2
            continue
        if bare.startswith(".. "):
            close()
            if code.match(bare):
                taken, i = indented(i + 1, indent)
                taken = [t for k, t in enumerate(taken) if not re.match(r"\s+:[\w-]+:", t)]
                body = "\n".join(taken).strip("\n")
                if body.strip():
                    depth = min(len(t) - len(t.lstrip()) for t in taken if t.strip())
                    blocks.append((list(path), "```\n" + "\n".join(t[depth:] for t in body.split("\n")) + "\n```"))
                continue
            if skip.match(bare) or not re.match(r"\.\. [\w:-]+::", bare):
                _, i = indented(i + 1, indent)
                continue
            rest = re.sub(r"^\.\. ([\w:-]+)::\s*", "", bare)
            kind = re.match(r"\.\. ([\w:-]+)::", bare).group(1)
            if rest and kind.split(":")[-1] not in ("note", "tip", "warning", "seealso", "important", "admonition"):
                blocks.append((list(path), "`%s`" % rest.strip("`")))
            elif rest:
                paragraph = [rest]
            i += 1
            continue
        if not bare:
            if close():
                taken, after = indented(i, indent)
                while taken and not taken[0].strip():
                    taken.pop(0)
                while taken and not taken[-1].strip():
                    taken.pop()
                if taken and len(taken[0]) > len(taken[0].lstrip()):
                    depth = len(taken[0]) - len(taken[0].lstrip())
                    k = i
                    while k < len(lines) and (not lines[k].strip() or len(lines[k]) - len(lines[k].lstrip()) >= depth):
                        k += 1
                    body = [l[depth:] for l in lines[i:k]]
                    blocks.append((list(path), "```\n" + "\n".join(body).strip("\n") + "\n```"))
                    i = k
                    continue
            i += 1
            continue
        if re.match(r"\s*([-*] |\d+\. |#\. )", line) and paragraph:
            close()
        if not re.match(r"\s*:[\w-]+:(\s|$)", line) or paragraph:
            paragraph.append(bare if not paragraph else line)
        i += 1
    close()
    return blocks


class Html(html.parser.HTMLParser):
    """Headings, paragraphs, items, rows and code of a page, in reading order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.blocks, self.path, self.text, self.kind, self.hidden, self.pre, self.cells = [], [], "", "p", 0, False, None

    def close_block(self):
        text = self.text if self.pre else re.sub(r"\s+", " ", self.text).strip()
        self.text = ""
        if not text.strip():
            return
        if self.kind[0] == "h" and self.kind[1:].isdigit():
            level = int(self.kind[1])
            del self.path[max(0, level - 1):]
            self.path.append(text.replace("¶", "").strip())
        elif self.pre:
            self.blocks.append((list(self.path), "```\n" + text.strip("\n") + "\n```"))
        else:
            self.blocks.append((list(self.path), ("- " if self.kind == "li" else "") + text))

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "style", "head", "nav"):
            self.hidden += 1
        elif tag == "tr":
            self.close_block()
            self.cells = []
        elif tag in ("td", "th") and self.cells is not None:
            self.text = ""
        elif tag == "br":
            self.text += "\n" if self.pre else " "
        elif tag in ("p", "li", "dt", "dd", "div", "table", "ul", "ol", "dl", "pre", "blockquote") or re.fullmatch(r"h[1-6]", tag):
            if self.cells is None:
                self.close_block()
                self.kind = "li" if tag == "p" and self.kind == "li" and not self.text else tag
                self.pre = tag == "pre"
        elif tag in ("code", "tt") and not self.pre:
            self.text += "`"

    def handle_endtag(self, tag):
        if tag in ("script", "style", "head", "nav"):
            self.hidden = max(0, self.hidden - 1)
        elif tag in ("td", "th") and self.cells is not None:
            self.cells.append(re.sub(r"\s+", " ", self.text).strip())
            self.text = ""
        elif tag == "tr" and self.cells is not None:
            if len(self.cells) > 1 and any(self.cells):
                self.blocks.append((list(self.path), "| " + " | ".join(self.cells) + " |"))
            elif self.cells and self.cells[0]:
                self.blocks.append((list(self.path), self.cells[0]))
            self.cells = None
        elif tag in ("p", "li", "dt", "dd", "div", "table", "pre", "blockquote") or re.fullmatch(r"h[1-6]", tag):
            if self.cells is None:
                self.close_block()
                self.kind, self.pre = "p", False
        elif tag in ("code", "tt") and not self.pre:
            self.text += "`"

    def handle_data(self, data):
        if not self.hidden:
            self.text += data


def from_html(text):
    parser = Html()
    parser.feed(text)
    parser.close_block()
    return parser.blocks


def cut(root):
    """Passages of about 150 words of all pages of a book that has no index."""
    passages = []
    skip = re.compile(r"changelog|changes|release|whatsnew|history|AUTHORS|genindex|_modules|locale|RelNotes|searchindex|keyword_index", re.I)
    for page in sorted(glob.glob(root + "/**/*", recursive=True)):
        name = os.path.relpath(page, root)
        kind = name.rsplit(".", 1)[-1]
        if kind not in ("md", "mdx", "rst", "txt", "html") or skip.search(name):
            continue
        text = open(page, errors="replace").read()
        blocks = {"md": from_markdown, "mdx": from_markdown, "html": from_html}.get(kind, from_rst)(text)
        if not blocks:
            continue
        title = next((p[0] for p, _ in blocks if p and p[0]), os.path.basename(name))
        waiting, words = [], 0

        def close():
            if waiting:
                path = [h for h in waiting[0][0] if h]
                body = waiting[0][1]
                for before, (_, block) in zip(waiting, waiting[1:]):
                    same = block[:2] == before[1][:2] and block[:2] in ("- ", "| ")
                    body += ("\n" if same else "\n\n") + block
                passages.append({"page": name, "path": [title] + [h for h in path if h != title], "text": body})

        for path, block in blocks:
            size = len(block.split())
            if waiting and (path != waiting[0][0] or words + size > 170):
                close()
                waiting, words = [], 0
            waiting.append((path, block))
            words += size
        close()
    return passages


def book_passages(name, arguments):
    found = indexed(os.path.join(arguments.indexes, name))
    if found is None:
        return cut(os.path.join(arguments.books, name)), False
    return [{"page": c["document_id"], "path": [c["page_title"]] + c["heading_hierarchy"], "text": c["content"]} for c in found], True


def stretch(text, begins, ends):
    """The part of a page from some words to others; None if they are not found."""
    spaced = [r"\s+".join(map(re.escape, words.split())) for words in (begins, ends)]
    found = re.search(spaced[0] + r"(?s:.{0,4000}?)" + spaced[1], text)
    return found and found.group(0)


def lines(path):
    return [json.loads(line) for line in open(path) if line.strip()]


def question(entry, passages, index):
    """A question with its passages: [number, units that hold a needle], and the best of BM25."""
    needles = [plain(n) for n in entry["needles"]]
    holding = []
    for i, p in enumerate(passages):
        if any(n in p["flat"] for n in needles):
            hit = holding_units([u for _, u in p["units"]], entry["needles"])
            if hit:
                holding.append([i, hit])
    return {"id": entry["id"], "question": entry["question"], "answerable": entry["answerable"], "kind": entry["kind"],
            "holding": holding, "bm25": index.top(entry["question"], 200)}


def add_passages(folder, name, passages, index, texts):
    """Claims and questions about single passages of a book, each named by its page, its heading and its first and last words."""
    path = os.path.join(folder or "", name + ".jsonl")
    if not folder or not os.path.exists(path):
        return [], []
    entries, questions, lost = [], [], 0
    for e in lines(path):
        begun = [i for i, x in enumerate(passages) if x["page"] == e["page"] and x["text"].startswith(e["begins"][:30])]
        # A passage that only ends differently, because the book or the parser changed, is still the same.
        at = next((i for i in begun if passages[i]["text"].endswith(e["ends"])), begun[0] if len(begun) == 1 else None)
        if at is None:
            # The book is cut differently here: the claims still hold for the same words of the page.
            text = stretch(texts.get(e["page"], ""), e["begins"], e["ends"])
            made = units(text) if text else []
            if not made or any(k >= len(made) for _, u in e["questions"] for k in u):
                lost += 1
                continue
            entries.append({"book": name, "heading": e["heading"], "units": made, "claims": e["claims"], "held": False,
                            "questions": e["questions"], "unanswered": e["unanswered"]})
            continue
        x = passages[at]
        entries.append({"book": name, "heading": " > ".join(x["path"]), "units": x["units"], "claims": e["claims"], "held": False,
                        "questions": e["questions"], "unanswered": e["unanswered"]})
        # Other passages of the book may answer as well: `loose` keeps the likeliest of them from counting as wrong.
        questions += [{"id": f"{name}-p{at}-{k}", "question": q, "answerable": True, "kind": "", "loose": True, "holding": [[at, u]],
                       "bm25": index.top(q, 60)} for k, (q, u) in enumerate(e["questions"])]
    print(f"{'':22} {len(entries)} passages with claims, {lost} not found")
    return entries, questions


def fewer(passages, questions, most):
    """At most `most` passages of a book: those of its questions, their best candidates, and others at random. Renumbers the questions."""
    if len(passages) <= most:
        return passages
    keep = {i for q in questions for i, _ in q["holding"]} | {i for q in questions for i, _ in q["bm25"][:20]}
    rest = [i for i in range(len(passages)) if i not in keep]
    random.Random(1).shuffle(rest)
    keep = sorted(keep | set(rest[:max(0, most - len(keep))]))
    new = {i: k for k, i in enumerate(keep)}
    for q in questions:
        q["holding"] = [[new[i], u] for i, u in q["holding"]]
        q["bm25"] = [[new[i], s] for i, s in q["bm25"] if i in new]
    return [passages[i] for i in keep]


def add_written(folder, train, evaluation):
    """Pages written for this: every file is a book, with claims, questions and questions without an answer of its own."""
    for path in sorted(glob.glob(folder + "/*.json")):
        name = "written-" + os.path.basename(path)[:-5]
        held = name in VALIDATION_WRITTEN
        sections = [(page["page"], s) for page in json.load(open(path)) for s in page["sections"]]
        passages = [{"page": page, "path": page + " > " + s["heading"], "units": s["units"], "held": 0} for page, s in sections]
        train["books"][name] = {"validation": held, "no_claims": held, "passages": passages}
        if not held:
            train["claims"] += [{"book": name, "heading": p["path"], "units": s["units"], "claims": s["claims"], "held": False,
                                 "questions": s["questions"], "unanswered": s["unanswered"]} for p, (_, s) in zip(passages, sections)]
            continue
        index = Bm25([p["path"] + "\n" + "\n".join(u for _, u in p["units"]) for p in passages])
        questions = []
        for i, (_, s) in enumerate(sections):
            asked = [(q, [[i, u]]) for q, u in s["questions"]] + [(q, []) for q in s["unanswered"]]
            questions += [{"id": f"{name}-{i}-{k}", "question": q, "answerable": bool(h), "kind": "", "holding": h, "bm25": index.top(q, 400)}
                          for k, (q, h) in enumerate(asked)]
        evaluation["written_questions"][name] = questions
        evaluation["written_claims"] += [{"heading": p["path"], "units": s["units"], "claims": s["claims"]} for p, (_, s) in zip(passages, sections)]
    print("written: training passages", sum("unanswered" in c for c in train["claims"]), "validation claims",
          sum(len(c["claims"]) for c in evaluation["written_claims"]))


def main():
    p = argparse.ArgumentParser()
    for name in "books questions claims squad support reading scifact-corpus indexes out".split():
        p.add_argument("--" + name, required=True)
    p.add_argument("--written", help="a folder of pages with claims and questions, one JSON file a book")
    p.add_argument("--passages", help="a folder of claims and questions about passages of books, one JSON lines file a book")
    p.add_argument("--most", type=int, default=2000, help="passages of a training book that are kept")
    p.add_argument("--more", nargs="*", default=[], help="books without questions and claims, for examples made by rules and for the teacher's pool")
    p.add_argument("--extra", help="further claims and questions: a JSON list with book, heading, units, claims, questions")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)

    pairs = lines(os.path.join(a.support, "pairs.jsonl"))
    seen = set()
    for pair in pairs:
        for evidence in pair["evidence_sentences"]:
            seen.update(plain(u) for _, u in units(evidence) if len(u.split()) >= 8)

    names = sorted({os.path.basename(f)[:-6].replace("-more", "") for f in glob.glob(a.questions + "/*.jsonl") if "-followups" not in f}
                   | {os.path.basename(f)[:-6] for f in glob.glob((a.passages or "-") + "/*.jsonl")} | set(a.more))
    tests = lines(os.path.join(a.reading, "questions.jsonl"))
    train, evaluation = {"books": {}, "questions": {}, "claims": [], "squad": []}, {"questions": {}, "reading": {}, "claims": [], "written_questions": {}, "written_claims": []}
    texts = {}
    for name in names:
        passages, whole = book_passages(name, a)
        for x in passages:
            x["units"] = units(x["text"])
            x["flat"] = " ".join(plain(u) for _, u in x["units"])
        passages = [x for x in passages if x["units"]]
        if not passages:
            print(name, "is not there")
            continue
        texts[name] = {}
        for x in passages:
            texts[name][x["page"]] = texts[name].get(x["page"], "") + x["text"] + "\n\n"
        index = Bm25([" > ".join(x["path"]) + "\n" + x["text"] for x in passages])
        entries = []
        for f in (name, name + "-more"):
            path = os.path.join(a.questions, f + ".jsonl")
            entries += lines(path) if os.path.exists(path) else []
        made = [question(q, passages, index) for q in entries]
        lost = sum(q["answerable"] and not q["holding"] for q in made)
        found, asked = add_passages(a.passages, name, passages, index, texts[name])
        train["claims"] += found
        test = [question(q, passages, index) for q in tests if q["book"] == name]
        if name not in VALIDATION_QUESTIONS and not test:
            passages = fewer(passages, made + asked, a.most)
        made += asked
        (evaluation if name in VALIDATION_QUESTIONS else train)["questions"][name] = made
        if test:
            evaluation["reading"][name] = test
        held = [int(any(plain(u) in seen for _, u in x["units"])) for x in passages]
        train["books"][name] = {
            "validation": name in VALIDATION_QUESTIONS, "no_claims": name in VALIDATION_CLAIMS,
            "passages": [{"page": x["page"], "path": " > ".join(x["path"]), "units": x["units"], "held": h}
                         for x, h in zip(passages, held)]}
        print(f"{name:22} {len(passages):5} passages {'indexed' if whole else 'cut':8} {sum(held):4} held, {len(made)} questions, "
              f"{lost} without a passage, {len(test)} test", flush=True)
    lost = 0
    for f in sorted(glob.glob(a.claims + "/*.jsonl")):
        for entry in lines(f):
            if "passage" not in entry:
                entry["passage"] = stretch(texts.get(entry["book"], {}).get(entry["page"], ""), entry["passage_begins"], entry["passage_ends"])
                if entry["passage"] is None:
                    lost += 1
                    continue
            made = {"book": entry["book"], "heading": entry["heading"], "units": units(entry["passage"]),
                    "claims": [[c["claim"], c["label"], c["kind"]] for c in entry["claims"]]}
            held = any(plain(u) in seen for _, u in made["units"])
            if entry["book"] in VALIDATION_CLAIMS:
                evaluation["claims"].append(made)
            else:
                train["claims"].append(dict(made, held=held))
    if a.extra:
        train["claims"] += json.load(open(a.extra))
    if a.written:
        add_written(a.written, train, evaluation)
    print("claims of passages that were not found:", lost)
    print("claims: train", sum(len(c["claims"]) for c in train["claims"]), "of passages shared with the test",
          sum(len(c["claims"]) for c in train["claims"] if c["held"]), "validation", sum(len(c["claims"]) for c in evaluation["claims"]))

    # SQuAD 2: whole articles for training, the others for the test.
    corpus = {}
    for line in gzip.open(os.path.join(a.squad, "corpus.jsonl.gz"), "rt"):
        c = json.loads(line)
        corpus[c["_id"]] = c
    qa = lines(os.path.join(a.squad, "qa.jsonl"))
    articles = list(dict.fromkeys(c.rsplit("#", 1)[0] for c in corpus))
    training = set(articles[: round(len(articles) * .6)])
    print("squad articles: training", sorted(training), "test", [x for x in articles if x not in training])
    evaluation["squad"] = []
    for article in articles:
        ids = [c for c in corpus if c.rsplit("#", 1)[0] == article]
        where = {c: i for i, c in enumerate(ids)}
        entry = {"title": article.replace("_", " "), "passages": [units(corpus[c]["text"]) for c in ids],
                 "questions": [{"question": q["question"].strip(), "passage": where[q["evidence"]], "answers": q["answers"],
                                "units": holding_units([u for _, u in units(corpus[q["evidence"]]["text"])], q["answers"])}
                               for q in qa if q["evidence"] in where]}
        (train if article in training else evaluation)["squad"].append(entry)

    # Test sets of claims.
    evaluation["pairs"] = [{"claim": x["claim"], "label": int(x["label"] == "supported"), "kind": x["kind"], "heading": x["heading"],
                            "units": units("\n\n".join(x["evidence_sentences"]))} for x in pairs]
    evaluation["wice"] = [{"claim": x["claim"], "label": int(x["label"] == "supported"), "kind": x["label"], "heading": "",
                           "units": [["s", s] for s in x["evidence_sentences"]]} for x in lines(os.path.join(a.support, "wice/support_dev.jsonl"))]
    abstracts = {}
    for line in gzip.open(a.scifact_corpus, "rt"):
        c = json.loads(line)
        abstracts[c["_id"]] = c
    evaluation["scifact"] = [{"claim": x["claim"], "label": int(x["label"] == "SUPPORT"), "kind": x["label"],
                              "heading": abstracts[x["doc"]]["title"], "units": units(abstracts[x["doc"]]["text"])}
                             for x in lines(os.path.join(a.support, "scifact_dev.jsonl")) if x["doc"] in abstracts]
    for name, data in (("train", train), ("eval", evaluation)):
        path = os.path.join(a.out, name + ".json.gz")
        with gzip.open(path, "wt", compresslevel=9) as f:
            json.dump(data, f, ensure_ascii=False)
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
