"""Draws training examples: claims with passages, questions with passages, and questions with groups of passages.

Everything is drawn afresh from the material of prepare.py with a seeded `random.Random`; `progress` (0 to 1) moves the
mixture from rule-made examples towards those that people wrote.
"""
import random

import numpy as np

import rules
from text import BOS, EOS, HEADING_LIMIT, LIMIT, MARK, PAD, QUERY_LIMIT, plain

SUPPORTED, CONTRADICTED, NOT_MENTIONED, WRONG = 0, 1, 2, 3
LABELS = {"supported": SUPPORTED, "contradicted": CONTRADICTED, "not_mentioned": NOT_MENTIONED}
GROUP = 8
choice = rules.choice


class Passage:
    """A passage with its units as text and as tokens."""
    __slots__ = ("book", "page", "path", "units", "tokens", "head", "near", "held", "number", "_ctx")

    def __init__(self, book, page, path, units, held=0):
        self.book, self.page, self.path, self.units, self.held = book, page, path, units, held
        self.near, self._ctx = [], None


class Material:
    def __init__(self, data, coder):
        self.coder = coder
        self.books, self.claims, self.squad, self.questions, self.written, self.unanswered = {}, [], [], {}, [], []
        for name, book in data["books"].items():
            self.books[name] = [Passage(name, p["page"], p["path"], p["units"], p["held"]) for p in book["passages"]]
        self.closed = {n for n, b in data["books"].items() if b["validation"] or b["no_claims"]}
        for entry in data["claims"]:
            if not entry["held"]:
                p = Passage(entry["book"], "", entry["heading"], entry["units"])
                self.claims.append((p, entry["claims"]))
                self.written += [(p, q, u) for q, u in entry.get("questions", [])]
                self.unanswered += [(p, q) for q in entry.get("unanswered", [])]
        for article in data["squad"]:
            passages = [Passage("squad", article["title"], article["title"], u) for u in article["passages"]]
            self.squad.append((passages, article["questions"]))
        self.questions = data["questions"]
        self.all = [p for b in self.books.values() for p in b] + [p for p, _ in self.claims] + [p for ps, _ in self.squad for p in ps]
        for number, p in enumerate(self.all):
            p.number = number
        self.encode(self.all)
        # Words that the rules draw from, for every book.
        self.pools = {}
        for name, passages in list(self.books.items()) + [("squad", [p for ps, _ in self.squad for p in ps])]:
            rng = random.Random(1)
            found = {"codes": set(), "names": set(), "words": set()}
            for p in rng.sample(passages, min(600, len(passages))):
                text = "\n".join(u for k, u in p.units if k != "c")
                prose = rules.CODE.sub(" ", text)
                found["codes"].update(rules.CODE.findall(text)[:4])
                found["names"].update(rules.NAME.findall(prose)[:3])
                found["words"].update(w for w in rules.WORD.findall(prose)[:8] if w.lower() not in rules.STOP)
            self.pools[name] = {k: sorted(v)[:1500] for k, v in found.items()}
        for p, _ in self.claims:  # a book that is not there lends its words from another
            self.pools.setdefault(p.book, self.pools["squad"])
        self.open = [p for name, b in self.books.items() if name not in self.closed for p in b
                     if not p.held and sum(len(u) for _, u in p.units) > 120]
        # Long lists of changes hardly read like a book: draw at most 2,500 passages of any one book.
        rng = random.Random(2)
        by_book = {}
        for p in self.open:
            by_book.setdefault(p.book, []).append(p)
        self.open = [p for b in by_book.values() for p in (b if len(b) <= 2500 else rng.sample(b, 2500))]
        self.squad_passages = [p for ps, _ in self.squad for p in ps]

    def encode(self, passages):
        texts = [" " + u for p in passages for _, u in p.units]
        heads = self.coder.many([p.path + "\n" for p in passages])
        ids = self.coder.many(texts)
        at = 0
        for p, head in zip(passages, heads):
            p.head = np.array(head[-HEADING_LIMIT:], dtype=np.uint16)
            p.tokens = [np.array(i[:LIMIT], dtype=np.uint16) for i in ids[at:at + len(p.units)]]
            at += len(p.units)

    def context(self, p):
        if p._ctx is None:
            p._ctx = rules.context([u for k, u in p.units if k != "c"], p.path, self.pools[p.book])
            p._ctx["code_words"] = [w for k, u in p.units if k == "c" for w in rules.re.findall(r"--?[a-z][\w-]+|[A-Za-z_]\w{2,}", u)][:60]
        return p._ctx


def content(text):
    return {w for w in rules.re.findall(r"[a-z0-9_]{3,}", text.lower()) if w not in rules.STOP}


def overlap(claim, text):
    """Share of the words of a claim that stand in a text."""
    words = content(claim)
    return len(words & content(text)) / max(1, len(words))


class Example:
    __slots__ = ("ids", "marks", "units", "changed", "answerable", "support", "weight", "passage", "labelled")


class Sampler:
    def __init__(self, material, seed):
        self.m, self.rng = material, random.Random(seed)
        self.tokenizer = material.coder.tokenizer
        m = material
        self.question_list = []
        for name, questions in m.questions.items():
            for q in questions:
                if q.get("hybrid") and (q["holding"] or not q["answerable"]):
                    self.question_list.append((name, q, {i: set(u) for i, u in q["holding"]}))
        self.with_answer = [q for q in self.question_list if q[1]["answerable"]]
        self.without = [q for q in self.question_list if not q[1]["answerable"]]
        self.squad_questions = [(ps, q) for ps, qs in m.squad for q in qs]
        self.answers = {}
        for ps, q in self.squad_questions:
            if q["answers"]:
                self.answers.setdefault(id(ps[q["passage"]]), []).extend(q["answers"][:1])

    # ---- one example
    def example(self, query, p, keep=None, units=None, support=-1, answerable=-1, spans=None, weight=1.0, tokens=None, head=None):
        """`keep`: numbers of the units shown; `units`: those that answer (None: not known); `spans`: changed characters of
        the query (None: not known)."""
        enc = self.tokenizer.encode(query, add_special_tokens=False)
        q = enc.ids[:QUERY_LIMIT]
        e = Example()
        parts = [[BOS], q, [EOS, EOS], p.head if head is None else head]
        size = 3 + len(q) + len(parts[3])
        e.marks = []
        tokens = p.tokens if tokens is None else tokens
        for k in (range(len(tokens)) if keep is None else keep):
            room = LIMIT - 1 - size
            if room < 6:
                break
            t = tokens[k]
            if len(t) > room - 1:
                t = t[:room - 1]
            e.marks.append((size, k))
            parts.append([MARK])
            parts.append(t)
            size += 1 + len(t)
        parts.append([EOS])
        e.ids = np.concatenate([np.asarray(x, dtype=np.int32) for x in parts])
        e.units = None if units is None else set(units)
        e.changed = None
        if spans is not None:
            e.changed = [int(any(a < end and start < b for start, end in spans)) for a, b in enc.offsets[:QUERY_LIMIT]]
        e.answerable, e.support, e.weight, e.passage, e.labelled = answerable, support, weight, p.number, 1.
        return e

    def window(self, p, number):
        """Mostly the whole passage, sometimes some units around one of them."""
        n = len(p.units)
        if n <= 3 or self.rng.random() < .5:
            return list(range(n))
        before, after = int(self.rng.random() * 5), int(self.rng.random() * 5)
        return list(range(max(0, number - before), min(n, number + after + 1)))

    def sentence(self, p, least=5):
        found = [k for k, (kind, u) in enumerate(p.units) if kind in "si" and least <= len(u.split()) <= 45]
        return choice(self.rng, found) if found else None

    def base(self, p, k):
        text = p.units[k][1]
        if p.units[k][0] == "i":
            text = rules.re.sub(r"^\s*([-*+]|\d+[.)])\s+", "", text)
        return rules.re.sub(r"\s+", " ", text).strip()

    # ---- claims
    def claim(self, progress):
        r = self.rng.random()
        human = .2 if progress < .2 else .2 + (progress - .2) / .8 * .62
        made = None
        while made is None:
            if r < human:
                made = self.human_claim()
            elif r < human + .08:
                made = self.squad_claim()
            else:
                made = self.rule_claim()
        return made

    def rule_claim(self):
        rng, m = self.rng, self.m
        p = choice(rng, m.open) if rng.random() < .93 else choice(rng, m.squad_passages)
        ctx = m.context(p)
        k = int(rng.random() * len(p.units))
        kind = p.units[k][0]
        if kind == "r":
            made = rules.row_claim(p.units, k, rng)
            if not made:
                return None
            true, wrong, span = made
            if wrong and rng.random() < .55:
                return self.example(wrong, p, units=[k], support=CONTRADICTED, spans=[span])
            return self.example(rules.synonyms(true, rng, .3), p, units=[k], support=SUPPORTED, spans=[])
        if kind == "c":
            if rng.random() < .5:
                return None
            made = rules.code_claim(p.units, k, rng)
            if not made:
                return None
            form, line = made
            before = form[:form.find("{}")]
            if rng.random() < .5:
                changed = rules.change_code(line, ctx, rng)
                if not changed:
                    return None
                line, a, b, label = changed
                return self.example(form.replace("{}", line), p, units=[k], support=label, spans=[(len(before) + a, len(before) + b)])
            return self.example(form.replace("{}", line), p, units=[k], support=SUPPORTED, spans=[])
        k = self.sentence(p)
        if k is None:
            return None
        text = self.base(p, k)
        used = [k]
        if rng.random() < .12 and k + 1 < len(p.units) and p.units[k + 1][0] == "s":
            text = text.rstrip(". ") + choice(rng, [", and ", "; ", ". ", ", while "]) + rules.lower_first(self.base(p, k + 1))
            used = [k, k + 1]
        # Right claims are reworded more than wrong ones, so that new words alone do not look wrong.
        r = rng.random()
        if rng.random() < (.92 if r < .44 else .75):
            text = rules.rewrite(text, p.path, rng, choice(rng, [.6, 1, 1.3, 1.6] if r < .44 else [.3, .6, 1]))
        keep = self.window(p, k)
        if used[-1] not in keep:
            keep.append(used[-1])
        if r < .44:
            return self.example(text, p, keep, used, SUPPORTED, spans=[])
        if r < .88:
            changed = rules.mutate(text, ctx, rng)
            if not changed:
                return None
            text, spans, label = changed
            return self.example(text, p, keep, used, label, spans=spans)
        if r < .94:  # the sentence is taken out of the passage
            keep = [x for x in range(len(p.units)) if x not in used and p.units[x][1] != p.units[k][1]]
            return self.example(text, p, keep, [], NOT_MENTIONED) if keep else None
        if not p.near:
            return None
        other = self.m.books[p.book][choice(rng, p.near[:15])] if p.book != "squad" else choice(rng, m.squad_passages)
        if other is p:
            return None
        return self.example(text, other, None, [], NOT_MENTIONED)

    def human_claim(self):
        rng, m = self.rng, self.m
        p, claims = choice(rng, m.claims)
        text, label, kind = choice(rng, claims)
        label = LABELS[label]
        spans = [] if label == SUPPORTED else None
        ctx = m.context(p)
        r = rng.random()
        whole = " ".join(u for _, u in p.units)
        # True claims in other words and wrong ones in the words of the passage count most.
        share = overlap(text, whole)
        weight = 1 + 2 * (1 - share) if label == SUPPORTED else .7 + share
        if label == SUPPORTED and r < .28:
            changed = rules.mutate(text if rng.random() < .6 else rules.rewrite(text, p.path, rng, .4), ctx, rng)
            if not changed:
                return None
            return self.example(changed[0], p, support=changed[2], spans=changed[1], weight=1.3)
        if label == SUPPORTED and r < .31:
            other = choice(rng, m.claims)[0]
            return self.example(text, other, support=NOT_MENTIONED) if other is not p else None
        if label == SUPPORTED and r < .40 and len(p.units) > 4:
            # The units that share most with the claim are taken out: it is no longer supported.
            scored = sorted(range(len(p.units)), key=lambda k: -overlap(text, p.units[k][1]))
            if overlap(text, p.units[scored[0]][1]) < .3:
                return None
            keep = sorted(scored[2:])
            return self.example(text, p, keep, support=WRONG, weight=.7)
        tokens = head = None
        if r < .75:
            # A name or number that both share gets another name in both (label kept) or in the passage alone (then wrong).
            shared = [x for x in ctx["codes"] + ctx["numbers"] if x.strip("`") in text and len(x) > 1]
            if shared:
                old = choice(rng, shared).strip("`")
                pool = [x.strip("`") for x in (ctx["book_codes"] if not old[0].isdigit() else [])]
                new = choice(rng, pool) if pool else str(int(rng.random() * 90) + 2)
                if old != new and new not in whole and new not in text:
                    def swap(s):
                        return rules.re.sub(r"(?<![\w.])" + rules.re.escape(old) + r"(?![\w])", lambda _: new, s)
                    tokens = [np.array(i[:LIMIT], dtype=np.uint16) for i in m.coder.many([" " + swap(u) for _, u in p.units])]
                    if swap(whole) == whole:
                        return None
                    if label == SUPPORTED and rng.random() < .4:
                        at = text.find(old)
                        return self.example(text, p, support=WRONG, spans=[(at, at + len(old))], tokens=tokens)
                    text = swap(text)
                    head = np.array(m.coder.heading(swap(p.path))[-HEADING_LIMIT:], dtype=np.uint16)
        if rng.random() < .4:
            text = rules.rewrite(text, p.path, rng, .35)
        return self.example(text, p, support=label, spans=spans, tokens=tokens, head=head, weight=weight)

    def squad_claim(self):
        rng = self.rng
        ps, q = choice(rng, self.squad_questions)
        p = ps[q["passage"]]
        if q["answers"]:
            answer = choice(rng, q["answers"])
            if rng.random() < .5:
                others = [a for a in self.answers.get(id(p), []) if all(plain(a) not in plain(b) and plain(b) not in plain(a) for b in q["answers"])]
                if not others:
                    return None
                return self.example(rules.statement(q["question"], choice(rng, others)), p, units=q["units"], support=WRONG)
            text = rules.statement(q["question"], answer)
            if rng.random() < .3:
                changed = rules.mutate(text, self.m.context(p), rng, extra=False)
                return self.example(changed[0], p, units=q["units"], support=changed[2], spans=changed[1]) if changed else None
            return self.example(text, p, units=q["units"], support=SUPPORTED, spans=[])
        others = self.answers.get(id(p), [])
        return self.example(rules.statement(q["question"], choice(rng, others)), p, support=WRONG) if others else None

    # ---- questions with one passage
    def question(self, progress):
        r = self.rng.random()
        share = .10 if progress < .4 else .10 + (progress - .4) / .6 * .25
        made = None
        while made is None:
            if r < share:
                made = self.squad_question()
            elif r < share + .04:
                made = self.no_answer()
            elif r < share + .04 + .55 * progress and self.m.unanswered:
                made = self.written_question()
            else:
                made = self.rule_question()
        return made

    def squad_question(self):
        rng = self.rng
        ps, q = choice(rng, self.squad_questions)
        p = ps[q["passage"]]
        text = q["question"]
        r = rng.random()
        if q["answers"] and r < .25:
            changed = rules.mutate(text, self.m.context(p), rng, extra=False)
            return self.example(changed[0], p, units=[], answerable=0, spans=changed[1]) if changed else None
        if q["answers"] and r < .35:
            other = choice(rng, ps)
            if other is p or any(plain(a) in plain(" ".join(u for _, u in other.units)) for a in q["answers"]):
                return None
            return self.example(text, other, units=[], answerable=0)
        if rng.random() < .3:
            text = rules.noisy(text, rng)
        return self.example(text, p, units=q["units"] if q["answers"] else [], answerable=int(bool(q["answers"])),
                            spans=[] if q["answers"] else None, weight=1.5)

    def written_question(self):
        """A question of a section with that section, or with one beside it."""
        rng = self.rng
        if rng.random() < .45:
            p, text = choice(rng, self.m.unanswered)
            return self.example(rules.noisy(text, rng), p, units=[], answerable=0, weight=1.5)
        p, text, units = choice(rng, self.m.written)
        text = rules.noisy(text, rng)
        if rng.random() < .2:
            others = self.others(p, 1)
            return self.example(text, others[0], units=[], answerable=0) if others else None
        return self.example(text, p, units=units, answerable=1, weight=1.5)

    def no_answer(self):
        name, q, _ = choice(self.rng, self.without)
        p = self.m.books[name][choice(self.rng, q["hybrid"][:20])]
        return self.example(rules.noisy(q["question"], self.rng), p, units=[], answerable=0)

    def rule_question(self):
        rng, m = self.rng, self.m
        p = choice(rng, m.open) if rng.random() < .75 else choice(rng, m.squad_passages)
        k = self.sentence(p)
        if k is None:
            return None
        base = self.base(p, k)
        text = rules.ask(rules.rewrite(base, p.path, rng, .6) if rng.random() < .5 else base, p.path, rng)
        if not text or len(text.split()) < 3:
            return None
        r = rng.random()
        keep = self.window(p, k)
        if r < .5:
            return self.example(rules.noisy(text, rng), p, keep, [k], answerable=1, spans=None, weight=.7)
        if r < .8:
            changed = rules.mutate(text, m.context(p), rng, extra=False)
            return self.example(changed[0], p, keep, [], answerable=0, spans=changed[1], weight=.7) if changed else None
        if r < .9:
            keep = [x for x in keep if x != k and p.units[x][1] != p.units[k][1]]
            return self.example(text, p, keep, [], answerable=0, weight=.7) if keep else None
        if p.book == "squad":
            other = choice(rng, m.squad_passages)
        elif p.near:
            other = m.books[p.book][choice(rng, p.near[:15])]
        else:
            return None
        return self.example(text, other, None, [], answerable=0, weight=.7) if other is not p else None

    # ---- groups: the first passage is the right one
    def group(self, progress):
        made = None
        r = self.rng.random()
        reading = .15 if progress < .2 else .15 + (progress - .2) / .8 * .4
        while made is None:
            if r < reading:
                made = self.reading_group()
            elif r < reading + .12:
                made = self.claim_group()
            elif r < reading + .2:
                made = self.squad_group()
            elif r < reading + .2 + (.8 - reading) * .5:
                made = self.near_group()
            else:
                made = self.rule_group()
        return made

    def near_group(self):
        """A question of a passage that is not shown: the embedder tells which of its neighbours are nearer."""
        rng = self.rng
        p = choice(rng, self.m.open) if rng.random() < .8 else choice(rng, self.m.claims)[0]
        others = self.others(p, GROUP)
        k = self.sentence(p)
        if not others or k is None:
            return None
        r = rng.random()
        base = self.base(p, k)
        text = base if r < .2 else rules.rewrite(base, p.path, rng) if r < .4 else rules.keywords(base, rng) if r < .6 else rules.ask(base, p.path, rng)
        if not text or len(text.split()) < 2:
            return None
        text = rules.noisy(text, rng)
        found = [self.example(text, o) for o in others]
        for e in found:
            e.labelled = 0.
        return found

    def reading_group(self):
        rng = self.rng
        if self.m.written and rng.random() < .35:
            p, text, right = choice(rng, self.m.written)
            others = self.others(p, GROUP - 1)
            text = rules.noisy(text, rng)
            return others and [self.example(text, p, units=right, answerable=1)] + [self.example(text, o, units=[], answerable=0) for o in others]
        name, q, holding = choice(rng, self.with_answer)
        book = self.m.books[name]
        good = [i for i in q["hybrid"] if i in holding][:4] or list(holding)[:3]
        bad = [i for i in q["hybrid"] if i not in holding]
        if len(bad) < GROUP - 1:
            return None
        right = choice(rng, good)
        picked = set()
        while len(picked) < GROUP - 1:
            picked.add(choice(rng, bad[:12] if rng.random() < .6 else bad))
        text = rules.noisy(q["question"], rng)
        thin = rng.random() < .5

        def keep(i):  # some units are left out, so that passages are not learned by heart
            return [k for k in range(len(book[i].units)) if k in holding.get(i, ()) or rng.random() < .8] if thin else None
        # Where only one passage is known to answer, others that the search ranks high may answer too.
        open_ = set(q["hybrid"][:6]) if q.get("loose") else ()
        found = [self.example(text, book[right], keep(right), units=holding[right], answerable=1)] + \
            [self.example(text, book[i], keep(i), units=None if i in open_ else [], answerable=-1 if i in open_ else 0) for i in picked]
        for e, i in zip(found[1:], picked):
            e.labelled = float(i not in open_)
        return found

    def others(self, p, n):
        if len(p.near) < n:
            return None
        picked = set()
        while len(picked) < n:
            picked.add(choice(self.rng, p.near[:16] if self.rng.random() < .7 else p.near))
        return [self.m.books[p.book][i] for i in picked]

    def claim_group(self):
        rng = self.rng
        p, claims = choice(rng, self.m.claims)
        text, label, _ = choice(rng, claims)
        others = self.others(p, GROUP - 1)
        if label == "not_mentioned" or not others:
            return None
        if rng.random() < .5:
            text = rules.ask(text, p.path, rng) or text
        text = rules.noisy(text, rng)
        return [self.example(text, p)] + [self.example(text, o) for o in others]

    def squad_group(self):
        rng = self.rng
        ps, q = choice(rng, self.squad_questions)
        if not q["answers"]:
            return None
        others = [p for k, p in enumerate(ps) if k != q["passage"] and not any(plain(a) in plain(" ".join(u for _, u in p.units)) for a in q["answers"])]
        if len(others) < GROUP - 1:
            return None
        text = rules.noisy(q["question"], rng)
        return [self.example(text, ps[q["passage"]], units=q["units"], answerable=1)] + \
            [self.example(text, o, units=[], answerable=0) for o in rng.sample(others, GROUP - 1)]

    def rule_group(self):
        rng = self.rng
        p = choice(rng, self.m.open)
        others = self.others(p, GROUP - 1)
        if not others:
            return None
        r = rng.random()
        if r < .2:
            text = rules.heading_question(p.path, any(k == "c" for k, _ in p.units), rng)
            others = [o for o in others if o.path != p.path]
            if not text or len(others) < GROUP - 1:
                return None
            head = None
            if rng.random() < .5:
                head = np.array(self.m.coder.heading(" > ".join(p.path.split(" > ")[:-1]))[-HEADING_LIMIT:], dtype=np.uint16)
            return [self.example(text, p, head=head)] + [self.example(text, o) for o in others]
        k = self.sentence(p)
        if k is None:
            return None
        base = self.base(p, k)
        if r < .3:  # the sentence is taken out; the passage must be known by the rest
            keep = [x for x in range(len(p.units)) if x != k]
            if len(keep) < 2:
                return None
            text = rules.rewrite(base, p.path, rng)
            return [self.example(text, p, keep)] + [self.example(text, o) for o in others]
        if r < .45:
            text = rules.keywords(base, rng)
        else:
            text = rules.ask(rules.rewrite(base, p.path, rng, .8) if rng.random() < .6 else base, p.path, rng)
        if not text or len(text.split()) < 2:
            return None
        text = rules.noisy(text, rng)
        label = 1 if r >= .45 else -1
        return [self.example(text, p, units=[k], answerable=label, weight=.5)] + \
            [self.example(text, o, units=[], answerable=0 if label == 1 else -1, weight=.5) for o in others]


def collate(examples):
    """Padded arrays of a batch; -1 marks what is not known."""
    size = (max(len(e.ids) for e in examples) + 15) // 16 * 16
    n = len(examples)
    ids = np.full((n, size), PAD, dtype=np.int32)
    units = np.full((n, size), -1, dtype=np.int8)
    changed = np.full((n, size), -1, dtype=np.int8)
    for k, e in enumerate(examples):
        ids[k, :len(e.ids)] = e.ids
        if e.units is not None:
            for at, number in e.marks:
                units[k, at] = number in e.units
        if e.changed is not None:
            changed[k, 1:1 + len(e.changed)] = e.changed
    return {"ids": ids, "units": units, "changed": changed, "answerable": np.array([e.answerable for e in examples], dtype=np.float32),
            "support": np.array([e.support for e in examples], dtype=np.int64),
            "passage": np.array([e.passage for e in examples], dtype=np.int64), "labelled": np.array([e.labelled for e in examples], dtype=np.float32), "weight": np.array([e.weight for e in examples], dtype=np.float32)}


def batches(sampler, progress, claims=320, questions=160, groups=64, pool=6):
    """Endless steps of three batches each; lengths alike within a batch."""
    while True:
        now = progress()
        c = sorted((sampler.claim(now) for _ in range(claims * pool)), key=lambda e: len(e.ids))
        q = sorted((sampler.question(now) for _ in range(questions * pool)), key=lambda e: len(e.ids))
        g = sorted((sampler.group(now) for _ in range(groups * pool)), key=lambda g: max(len(e.ids) for e in g))
        order = [list(range(pool)) for _ in range(3)]
        for o in order:
            sampler.rng.shuffle(o)
        for i in range(pool):
            a, b, d = (o[i] for o in order)
            yield (collate(c[a * claims:(a + 1) * claims]), collate(q[b * questions:(b + 1) * questions]),
                   collate([e for group in g[d * groups:(d + 1) * groups] for e in group]))
