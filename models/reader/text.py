"""How a passage is cut into units and how a query and a passage become token numbers.

The same rules must stand in the program that uses the model:

* A unit is a sentence of prose, an item of a list, a row of a table or a whole code block.
* Tokens: <s> QUERY </s></s> HEADING PATH "\\n" then for every unit: <mask> " "+UNIT, and a last </s>.
  Every piece is encoded alone, without special tokens. QUERY keeps its first 96 tokens, "HEADING PATH\\n" its
  last 48, and the whole is cut after 384 tokens (a unit that is cut keeps what fits).
"""
import re

BOS, PAD, EOS, MARK = 0, 1, 2, 50264
LIMIT, QUERY_LIMIT, HEADING_LIMIT = 384, 96, 48

ITEM = re.compile(r"^\s*([-*+] |\d+[.)] )")
RULE = re.compile(r"^\s*\|[\s:|-]+\|?\s*$")
ABBREVIATIONS = set("e.g i.e etc vs cf fig figs eq no dr mr mrs ms prof approx resp ca al sec ch vol incl".split())


def sentences(text):
    """Spans of the sentences of one block of prose; a line end always ends a sentence."""
    spans, start, i, in_code = [], 0, 0, False

    def close(end):
        piece = text[start:end]
        if piece.strip():
            spans.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))

    while i < len(text):
        c = text[i]
        end = False
        if c == "`":
            in_code = not in_code
        elif c == "\n":
            in_code, end = False, True
        elif c in ".!?" and not in_code:
            after = text[i + 1] if i + 1 < len(text) else " "
            if after.isspace() or after in '"”’)]':
                word = re.split(r"[\s(]", text[start:i])[-1].lower()
                rest = text[i + 1:].lstrip('"”’)] ')
                short = c == "." and (word in ABBREVIATIONS or (len(word) == 1 and word.isalpha()))
                end = not short and not rest[:1].islower()
        i += 1
        if end:
            while i < len(text) and text[i] in '"”’)]':
                i += 1
            close(i)
            start = i
    close(len(text))
    return spans


def units(content):
    """[(kind, text)] in reading order; kind is s(entence), i(tem), r(ow) or c(ode)."""
    found, prose, item, code, fence = [], [], [], [], None

    def close():
        nonlocal prose, item
        if item:
            found.append(("i", "\n".join(item).strip()))
        if prose:
            block = "\n".join(prose)
            found.extend(("s", block[a:b]) for a, b in sentences(block))
        prose, item = [], []

    for line in content.split("\n"):
        bare = line.strip()
        marker = re.match(r"`{3,}|~{3,}", bare)
        if fence:
            code.append(line)
            if bare == fence:
                found.append(("c", "\n".join(code)))
                fence = None
        elif marker:
            close()
            fence, code = marker.group(0), [line]
        elif not bare:
            close()
        elif bare.startswith("|"):
            close()
            if not RULE.match(bare):
                found.append(("r", bare))
        elif ITEM.match(line):
            close()
            item = [line]
        elif item:
            item.append(line)
        else:
            prose.append(line)
    if fence and code:
        found.append(("c", "\n".join(code)))
    close()
    return found


def assemble(query, heading, unit_ids, limit=LIMIT):
    """Token numbers of one input, and for every marker its place and the number of its unit."""
    ids = [BOS] + list(query[:QUERY_LIMIT]) + [EOS, EOS] + list(heading[-HEADING_LIMIT:])
    marks = []
    for number, unit in enumerate(unit_ids):
        room = limit - 1 - len(ids)
        if room < 6:
            break
        marks.append((len(ids), number))
        ids.append(MARK)
        ids.extend(unit[:room - 1])
    ids.append(EOS)
    return ids, marks


class Coder:
    """The tokenizer, with the rules above."""

    def __init__(self, path):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(path)

    def plain(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def many(self, texts):
        return [e.ids for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def heading(self, path):
        return self.plain(path + "\n")

    def input(self, query, heading, unit_texts):
        return assemble(self.plain(query), self.heading(heading), self.many([" " + u for u in unit_texts]))


MARKS = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u2013": "-",
                       "\u2014": "-", "\u2011": "-", "\u2026": "...", "\u00b6": " "})


def plain(text):
    """Text for comparing with a needle: lower case, plain quotes, no emphasis, single spaces."""
    text = text.lower().translate(MARKS).replace("`", "").replace("*", "")
    text = re.sub(r"(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)", "", text)
    return re.sub(r"\s+", " ", text).strip()


def holding_units(unit_texts, needles):
    """Numbers of the units that hold a needle, or part of one that runs over several units."""
    flat = [plain(u) for u in unit_texts]
    whole = ""
    spans = []
    for u in flat:
        spans.append((len(whole), len(whole) + len(u)))
        whole += u + " "
    hit = set()
    for needle in needles:
        n = plain(needle)
        if not n:
            continue
        at = whole.find(n)
        while at >= 0:
            hit.update(k for k, (a, b) in enumerate(spans) if a < at + len(n) and at < b)
            at = whole.find(n, at + 1)
    return sorted(hit)
