"""Refines a trained reader on public claims and questions, on one CPU core.

python refine.py --data PREPARED --public PUBLIC --embedder model.onnx --tokenizer tokenizer.json --start model.onnx --out FOLDER --minutes 30

The GPU stages (train.py) taught the reader what documentation looks like. This one adds claims that people wrote about
encyclopedia articles, tables and everyday sentences, many of them with minimal changes, and questions about paragraphs (public.py).
A quarter of every step is the data of the earlier stages, and a copy of the starting weights keeps the order of passages and the
choice among units where they were. No dropout: every public example is seen at most about once. Only one thread is used: on a busy
machine a second one costs more than it brings; start two runs with different seeds instead and take the mean of their weights
(export.py mean). All seeds are fixed, but the number of steps depends on the time given. With --minutes 0 the starting weights are measured.
"""
import argparse
import collections
import copy
import gzip
import json
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import evaluate
import rules
from samples import LABELS, SUPPORTED, WRONG, Material, Passage, Sampler, choice
from text import PAD, Coder, holding_units, plain, units
from train import Reader, load_embedder, load_start, labelled, runner, save

# How often a source is drawn, and how much one of its examples counts.
CLAIMS = {"fever-symmetric": (6, 1.), "foolmetwice": (6, 1.), "mnli": (12, .8), "negation": (5, .8), "conjnli": (10, .8), "breaking-nli": (4, .7), "cad-snli": (10, .8),
          "paws": (14, 1.), "wikifactcheck": (8, .8), "wice-partial": (1.5, .6), "tabfact": (3, .7), "semtabfacts": (4, 1.), "squad-claims": (14, 1.)}
QUESTIONS = {"squad": (44, 1.), "qnli": (14, .8), "clapnq": (7, 1.), "selqa": (8, .8), "qed-nq": (6, .8), "xquad-en": (5, .8)}
VALIDATION = ("foolmetwice", "mnli", "cad-snli", "conjnli", "paws", "squad-claims", "tabfact", "semtabfacts")
HELD = 30  # one title, or text without a title, in so many is kept for validation


def present(shares, folder, kind):
    """The sources that the folder has; the others are left out of the mixture."""
    for name in [name for name in shares if not os.path.exists(f"{folder}/{kind}-{name}.jsonl")]:
        print("without", kind, name)
        del shares[name]
    return list(shares)


class Public:
    """Claims and questions of the public sources as passages with units and tokens."""

    def __init__(self, folder, material):
        self.claims, self.questions, self.held_claims, self.held_questions = {}, {}, {}, []
        known = {}

        def passage(text, title):
            key = (text, title)
            if key not in known:
                known[key] = Passage("squad", title, title, [list(u) for u in units(text)])
                known[key].number = 0
            return known[key]

        def held(name):
            return random.Random(name).randrange(HELD) == 0
        for name in present(CLAIMS, folder, "claims"):
            rows = [json.loads(line) for line in open(f"{folder}/claims-{name}.jsonl")]
            found = [(passage(r["text"], r["title"]), r["claim"], {**LABELS, "wrong": WRONG}[r["label"]], held(r["title"] or r["text"])) for r in rows]
            found = [f for f in found if f[0].units]
            self.claims[name] = [f[:3] for f in found if not f[3]]
            if name in VALIDATION:
                self.held_claims[name] = [f[:3] for f in found if f[3]]
        for name in present(QUESTIONS, folder, "qa"):
            rows = [json.loads(line) for line in open(f"{folder}/qa-{name}.jsonl")]
            rows = [(passage(r["text"], r["title"]), r) for r in rows]
            rows = [r for r in rows if r[0].units]
            of_title = collections.defaultdict(list)
            for p, r in rows:
                of_title[r["title"]].append(p)
            everything = [p for p, _ in rows]
            made = [(p, r["question"].strip(), r["answers"], holding_units([u for _, u in p.units], r["answers"]) if r["answers"] else [],
                     of_title[r["title"]] if len(of_title[r["title"]]) > 3 and r["title"] else everything) for p, r in rows]
            away = [held(r["text"]) for _, r in rows]
            kept = [m for m, h in zip(made, away) if not h]
            self.questions[name] = [part for part in ([m for m in kept if m[2]], [m for m in kept if not m[2]]) if part]
            self.held_questions += [m for m, h in zip(made, away) if h and name in ("squad", "qnli", "clapnq")]
        self.passages = list(known.values())
        self.short = [p for p in self.passages if len(p.units) < 6 and not any(k == "r" for k, _ in p.units)]
        material.encode(self.passages)


class Mixture:
    """Draws the examples of a step."""

    def __init__(self, material, public, seed):
        self.rng, self.sampler, self.public, self.m = random.Random(seed), Sampler(material, seed), public, material

    def of(self, shares):
        return self.rng.choices(list(shares), [s for s, _ in shares.values()])[0]

    def claim(self):
        rng = self.rng
        name = self.of(CLAIMS)
        p, text, label = choice(rng, self.public.claims[name])
        weight = CLAIMS[name][1]
        tokens = p.tokens
        if len(p.units) < 4 and rng.random() < .35:
            # Evidence is rarely alone on a page: sentences about something else stand around it.
            tokens = list(tokens)
            for other in rng.sample(self.public.short, rng.randrange(1, 4)):
                tokens = tokens + other.tokens if rng.random() < .5 else other.tokens + tokens
        if label == SUPPORTED and rng.random() < .08:
            changed = rules.mutate(text, self.m.context(p), rng, extra=False)
            if changed:
                return self.sampler.example(changed[0], p, support=changed[2], weight=weight, tokens=tokens)
        return self.sampler.example(text, p, support=label, weight=weight, tokens=tokens)

    def question(self):
        rng = self.rng
        name = self.of(QUESTIONS)
        p, text, answers, right, beside = choice(rng, choice(rng, self.public.questions[name]))
        weight = QUESTIONS[name][1]
        r = rng.random()
        if answers and r < .15:
            other = choice(rng, beside)
            if other is not p and not any(plain(a) in plain(" ".join(u for _, u in other.units)) for a in answers):
                return self.sampler.example(text, other, units=[], answerable=0, weight=weight)
        elif answers and r < .3:
            changed = rules.mutate(text, self.m.context(p), rng, extra=False)
            if changed:
                return self.sampler.example(changed[0], p, units=[], answerable=0, weight=weight)
        return self.sampler.example(rules.noisy(text, rng) if rng.random() < .2 else text, p, units=right, answerable=int(bool(answers)), weight=weight)

    def kept(self):
        """A question with a passage that the search finds: what is right does not matter here, only that the scores stay."""
        name, q, _ = choice(self.rng, self.sampler.question_list)
        return self.sampler.example(q["question"], self.m.books[name][choice(self.rng, q["hybrid"])], units=[])

    def many(self, draw, count):
        found = []
        while len(found) < count:
            e = draw()
            if e is not None:
                found.append(e)
        return found


def batches(examples, most=2400):
    """Parts of similar length with at most so many tokens."""
    examples = sorted(examples, key=lambda e: len(e.ids))
    part = []
    for e in examples:
        if part and (len(part) + 1) * len(e.ids) > most:
            yield part
            part = []
        part.append(e)
    yield part


def tensors(part):
    size = max(len(e.ids) for e in part)
    ids = np.full((len(part), size), PAD, dtype=np.int64)
    marked = np.full((len(part), size), -1, dtype=np.int64)
    for k, e in enumerate(part):
        ids[k, :len(e.ids)] = e.ids
        if e.units is not None and e.support < 0:
            for place, number in e.marks:
                marked[k, place] = int(number in e.units)
    column = {name: torch.tensor([getattr(e, name) for e in part]) for name in ("answerable", "support", "weight")}
    return {"ids": torch.from_numpy(ids), "units": torch.from_numpy(marked), **column, "answerable": column["answerable"].float()}


def step_losses(model, origin, b, shares):
    first, token = model(b["ids"])
    parts = labelled(first, b)
    marked = b["units"] >= 0
    known = (marked & (b["answerable"] >= 0)[:, None]).float() * (1 + b["units"].clamp(min=0)) * b["weight"][:, None]
    scores = token[:, :, 0]
    if known.any():
        parts["units"] = (F.binary_cross_entropy_with_logits(scores, b["units"].clamp(min=0).float(), reduction="none") * known).sum() / known.sum()
    kept = (b["support"] < 0) & (b["answerable"] < 0)
    if kept.any():
        # The order of passages and the choice among units stay as they were.
        with torch.no_grad():
            before, before_token = origin(b["ids"][kept])
        parts["rank"] = F.smooth_l1_loss(first[kept, 0], before[:, 0])
        there = marked[kept]
        parts["kept"] = (F.smooth_l1_loss(scores[kept], before_token[:, :, 0], reduction="none") * there).sum() / there.sum().clamp(min=1)
    return sum(shares.get(k, 1.) * v for k, v in parts.items()), {k: float(v.detach()) for k, v in parts.items()}


def check(model, coder, evaluation, books, candidates, public, only):
    """Figures of the validation data, and of the test sets that are named."""
    run = runner(model)
    found = {}
    with torch.autocast("cpu", torch.bfloat16):
        for name, result in evaluate.everything(run, coder, evaluation, books, candidates, only).items():
            found[name] = {k: round(result[k], 4) for k in ("auroc", "hard_auroc", "best_unit", "rank@1", "rank@5", "answerable_auroc") if k in result}
        for name, claims in public.held_claims.items():
            claims = claims[:150]
            out = run([evaluate.assemble(coder.plain(c), p.head, p.tokens) for p, c, _ in claims])
            found["public " + name] = round(evaluate.auroc([o["support"][0] for o in out], [label == SUPPORTED for _, _, label in claims]), 4)
        out = run([evaluate.assemble(coder.plain(q), p.head, p.tokens) for p, q, *_ in public.held_questions])
        found["public questions"] = round(evaluate.auroc([o["answerable"] for o in out], [bool(q[2]) for q in public.held_questions]), 4)
    return found


def main():
    p = argparse.ArgumentParser()
    for name in ("data", "public", "embedder", "tokenizer", "start", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--origin", help="weights whose order of passages is kept, if not those of --start")
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--rate", type=float, default=2e-4)
    p.add_argument("--claims", type=int, default=16, help="public claims in a step")
    p.add_argument("--own", type=int, default=6, help="claims of the earlier stages in a step")
    p.add_argument("--questions", type=int, default=12, help="public questions in a step")
    p.add_argument("--own-questions", type=int, default=2)
    p.add_argument("--kept", type=int, default=4, help="questions with a passage of the search, whose scores shall stay")
    p.add_argument("--candidates", help="the best passages of the hybrid search for the validation questions")
    p.add_argument("--quiet", action="store_true", help="measure nothing on the way; the weights are saved all the same")
    p.add_argument("--frozen", type=int, default=2, help="lowest layers that stay as they are")
    p.add_argument("--every", type=int, default=20)
    p.add_argument("--seed", type=int, default=41)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    os.makedirs(a.out, exist_ok=True)
    begun = time.time()
    coder = Coder(a.tokenizer)
    data = json.load(gzip.open(a.data + "/train.json.gz", "rt"))
    evaluation = json.load(gzip.open(a.data + "/eval.json.gz", "rt"))
    for questions in data["questions"].values():
        for q in questions:
            q["hybrid"] = [i for i, _ in q["bm25"][:30]]
    material = Material(data, coder)
    public = Public(a.public, material)
    print(f"{time.time() - begun:.0f} s: {len(public.passages)} public passages, {len(material.claims)} passages with claims", flush=True)
    _, words = load_embedder(a.embedder)
    model = Reader(load_start(a.start), words, drop=0.)
    for layer in model.layers[:a.frozen]:
        layer.requires_grad_(False)
    model.pos.requires_grad_(False)
    model.norm.requires_grad_(False)
    trained = [q for q in model.parameters() if q.requires_grad]
    # The network computes in bfloat16; the weights that the optimizer changes are kept in float.
    quick = copy.deepcopy(model).bfloat16()
    origin = Reader(load_start(a.origin or a.start), words, drop=0.).bfloat16().eval().requires_grad_(False)
    twins = [q for q in quick.parameters() if q.requires_grad]
    optimizer = torch.optim.AdamW([{"params": [q for q in trained if q.ndim >= 2], "weight_decay": .01}, {"params": [q for q in trained if q.ndim < 2], "weight_decay": 0.}],
                                  lr=a.rate, betas=(.9, .98), eps=1e-6)
    candidates = json.load(open(a.candidates)) if a.candidates else {}
    books = {k: b["passages"] for k, b in data["books"].items()}
    evaluation["questions"] = {name: qs for name, qs in evaluation["questions"].items() if candidates and name in books}
    seen = ["claims", "written_claims"] + ["questions"] * bool(candidates)

    def report(when, parts):
        if not a.quiet:
            print(when, json.dumps(check(model, coder, evaluation, books, candidates, public, parts)), flush=True)
    if not a.minutes:
        report("start", seen)
    mixture = Mixture(material, public, a.seed)
    shares = {"support": 1.5, "answerable": 1., "units": .5, "rank": .6, "kept": .3}
    started, step, sums, counts, checks = time.time(), 0, collections.Counter(), collections.Counter(), [.25, .5, .75, .9]
    while a.minutes and (done := (time.time() - started) / (a.minutes * 60)) < 1:
        for g in optimizer.param_groups:
            g["lr"] = a.rate * min(1, done / .05 + .05) * (1 - .95 * done)
        quick.train()
        examples = mixture.many(mixture.claim, a.claims) + mixture.many(lambda: mixture.sampler.claim(1.), a.own) + \
            mixture.many(mixture.question, a.questions) + mixture.many(lambda: mixture.sampler.question(1.), a.own_questions) + mixture.many(mixture.kept, a.kept)
        quick.zero_grad(set_to_none=True)
        kinds = [[e for e in examples if e.support >= 0], [e for e in examples if e.support < 0]]
        for kind in kinds:
            for part in batches(kind):
                loss, found = step_losses(quick, origin, tensors(part), shares)
                (loss * len(part) / len(kind)).backward()
                for k, v in found.items():
                    sums[k] += v * len(part)
                    counts[k] += len(part)
        for q, twin in zip(trained, twins):
            q.grad = None if twin.grad is None else twin.grad.float()
        nn.utils.clip_grad_norm_(trained, 1.)
        optimizer.step()
        with torch.no_grad():
            for q, twin in zip(trained, twins):
                twin.copy_(q)
        step += 1
        if step % a.every == 0:
            print(f"{time.time() - begun:.0f} s, {done:.2f}, step {step} " + " ".join(f"{k} {v / counts[k]:.4f}" for k, v in sums.items()), flush=True)
            sums.clear(), counts.clear()
        if checks and done > checks[0]:
            checks.pop(0)
            os.makedirs(f"{a.out}/{100 * done:.0f}", exist_ok=True)
            save(model.weights(), f"{a.out}/{100 * done:.0f}")
            now = time.time()
            report(f"{done:.2f}", ["claims"])
            started += time.time() - now
    if step:
        save(model.weights(), a.out)
        print(step, "steps", flush=True)
        report("end", seen)


if __name__ == "__main__":
    main()
