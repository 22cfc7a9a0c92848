"""Trains the reader on one GPU.

python train.py --data PREPARED --embedder model.onnx --tokenizer tokenizer.json --out FOLDER --minutes 7 [--start stage1.npz] [--pool pool.pkl]

The weights are read from the embedder's ONNX file. Its table of word vectors stays as it is, so both models may share it;
its untrained copy finds hard negatives and teaches the order of passages. All seeds are fixed, but the number of steps
depends on the time given.
"""
import argparse
import gzip
import json
import multiprocessing
import os
import pickle
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import evaluate
from export import unpacked
from samples import GROUP, Material, Sampler, batches
from text import BOS, EOS, PAD, Coder

WIDTH, LAYERS, HEADS = 384, 6, 12
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load_start(path):
    """Weights packed by export.py (int8 per row), or those of a finished reader (its ONNX file)."""
    if path.endswith(".onnx"):
        return unpacked(path)
    z = np.load(path)
    w = {}
    for name in z.files:
        if name.endswith(".q8"):
            w[name[:-3]] = z[name].astype(np.float32) * z[name[:-3] + ".scale"].astype(np.float32)
        elif not name.endswith(".scale"):
            w[name] = z[name].astype(np.float32)
    return w


def load_embedder(path):
    """Word vectors and layers out of the embedder's int8 ONNX file; its smoothing factors are taken back."""
    import onnx
    from onnx import numpy_helper
    z = {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}
    words = z["words"].astype(np.float32) * z["word_scales"]
    w = {"pos": z["positions"], "emb_ln.w": z["normed_gain"], "emb_ln.b": z["normed_bias"]}
    for n in range(LAYERS):
        for x, name in (("qkv", "qkv"), ("ao", "out"), ("f1", "wide"), ("f2", "narrow")):
            name = f"l{n}_{name}"
            weight = z[name + "_weight_quantized"].astype(np.float32) * z[name + "_weight_scale"] * z[name + "_product_smooth"][:, None]
            w[f"l{n}.{x}.w"], w[f"l{n}.{x}.b"] = np.ascontiguousarray(weight.T), z[name + "_add"]
        for x, name in (("aln", "attended"), ("fln", "done")):
            w[f"l{n}.{x}.w"], w[f"l{n}.{x}.b"] = z[f"l{n}_{name}_gain"], z[f"l{n}_{name}_bias"]
    return {k: np.array(v, dtype=np.float32) for k, v in w.items()}, words


class Layer(nn.Module):
    def __init__(self, w, n, drop):
        super().__init__()

        def linear(name):
            m = nn.Linear(w[name + ".w"].shape[1], w[name + ".w"].shape[0])
            m.weight.data, m.bias.data = torch.tensor(w[name + ".w"]), torch.tensor(w[name + ".b"])
            return m

        def norm(name):
            m = nn.LayerNorm(WIDTH, eps=1e-12)
            m.weight.data, m.bias.data = torch.tensor(w[name + ".w"]), torch.tensor(w[name + ".b"])
            return m
        self.qkv, self.ao, self.f1, self.f2 = (linear(f"l{n}.{x}") for x in ("qkv", "ao", "f1", "f2"))
        self.aln, self.fln = norm(f"l{n}.aln"), norm(f"l{n}.fln")
        self.drop = drop

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if x.dtype == torch.bfloat16 and not x.is_cuda:  # PyTorch's own attention is four times slower there, backwards
            q, k, v = (y.contiguous() for y in (q, k, v))
            far = torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -1e4)
            a = ((q * (WIDTH // HEADS) ** -.5) @ k.transpose(-1, -2)).add_(far).softmax(-1) @ v
        else:
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        a = F.dropout(self.ao(a.transpose(1, 2).reshape(b, t, WIDTH)), self.drop, self.training)
        x = self.aln(x + a)
        f = F.dropout(self.f2(F.gelu(self.f1(x))), self.drop, self.training)
        return self.fln(x + f)


class Reader(nn.Module):
    """The encoder with linear heads; `changed` marks words of the query that do not fit and only helps the training."""

    def __init__(self, w, words, drop=.1):
        super().__init__()
        self.register_buffer("words", torch.tensor(words))
        self.pos = nn.Parameter(torch.tensor(w["pos"]))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.norm.weight.data, self.norm.bias.data = torch.tensor(w["emb_ln.w"]), torch.tensor(w["emb_ln.b"])
        self.layers = nn.ModuleList(Layer(w, n, drop) for n in range(LAYERS))
        self.first, self.token = nn.Linear(WIDTH, 5), nn.Linear(WIDTH, 2)
        for m, name in ((self.first, "first"), (self.token, "token")):
            if name + ".w" in w:
                m.weight.data, m.bias.data = torch.tensor(w[name + ".w"]), torch.tensor(w[name + ".b"])
            else:
                nn.init.normal_(m.weight, std=.02)
                nn.init.zeros_(m.bias)
        self.drop = drop

    def encode(self, ids):
        keep = ids != PAD
        mask = keep[:, None, None, :]
        x = self.norm(F.embedding(ids, self.words) + self.pos[:ids.shape[1]])
        x = F.dropout(x, self.drop, self.training)
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def forward(self, ids):
        x = self.encode(ids)
        return self.first(x[:, 0]).float(), self.token(x).float()

    def weights(self):
        w = {"pos": self.pos, "emb_ln.w": self.norm.weight, "emb_ln.b": self.norm.bias}
        for n, layer in enumerate(self.layers):
            for x in ("qkv", "ao", "f1", "f2", "aln", "fln"):
                w[f"l{n}.{x}.w"], w[f"l{n}.{x}.b"] = getattr(layer, x).weight, getattr(layer, x).bias
        for name, m in (("first", self.first), ("token", self.token)):
            w[name + ".w"], w[name + ".b"] = m.weight, m.bias
        return {k: v.detach().float().cpu().numpy() for k, v in w.items()}


def padded(rows):
    size = max(len(r) for r in rows)
    ids = np.full((len(rows), size), PAD, dtype=np.int64)
    for k, r in enumerate(rows):
        ids[k, :len(r)] = r
    return torch.from_numpy(ids).to(DEVICE)


@torch.no_grad()
def embed(model, rows):
    """Vectors of the embedder, of the untrained weights."""
    model.eval()
    out = torch.empty(len(rows), WIDTH, device=DEVICE)
    order = sorted(range(len(rows)), key=lambda k: len(rows[k]))
    for at in range(0, len(order), 512):
        part = order[at:at + 512]
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            x = model.encode(padded([rows[k] for k in part]))[:, 0]
        out[torch.tensor(part, device=DEVICE)] = F.normalize(x.float(), dim=-1)
    return out


def hybrid(bm25, dense, pages, share=.5, page_share=.4, deep=400, top=30):
    """Both searches, each scaled to 0..1, added; a passage gains from the best one of its page."""
    own, page = {}, {}
    best = torch.topk(dense, min(deep, len(dense)))
    lists = [(bm25, share), (list(zip(best.indices.tolist(), best.values.tolist())), 1 - share)]
    for found, weight in lists:
        if not found:
            continue
        low, high = min(s for _, s in found), max(s for _, s in found)
        peak = {}
        for i, s in found:
            x = (s - low) / (high - low) if high > low else 1.
            own[i] = own.get(i, 0) + weight * x
            peak[pages[i]] = max(peak.get(pages[i], 0), x)
        for name, x in peak.items():
            page[name] = page.get(name, 0) + weight * x
    scored = [(i, (1 - page_share) * s + page_share * page[pages[i]]) for i, s in own.items()]
    return sorted(scored, key=lambda x: (-x[1], x[0]))[:top]


def neighbours(model, material, data, evaluation):
    """For every passage its vector and the nearest of its book, and for every question the candidates of the hybrid search."""
    candidates = {}
    vectors = embed(model, [np.concatenate([[BOS], p.head, *p.tokens])[:255].tolist() + [EOS] for p in material.all])
    of_book = {}
    for name, passages in material.books.items():
        v = of_book[name] = vectors[passages[0].number:passages[-1].number + 1]
        for at in range(0, len(passages), 2048):
            near = torch.topk(v[at:at + 2048] @ v.T, min(48, len(passages)), dim=1).indices.tolist()
            for k, row in enumerate(near):
                me = passages[at + k]
                mine = {u for _, u in me.units}
                me.near = [i for i in row if i != at + k and not mine & {u for _, u in passages[i].units if len(u) > 30}]
        pages = [p.page for p in passages]
        for source in (data["questions"], evaluation["questions"], evaluation["written_questions"], evaluation["reading"]):
            questions = source.get(name, [])
            if questions:
                qv = embed(model, [[BOS] + material.coder.plain(q["question"])[:200] + [EOS] for q in questions])
                for q, vector in zip(questions, qv):
                    found = hybrid(q["bm25"], v @ vector, pages)
                    candidates[q["id"]] = [[i, round(s, 4)] for i, s in found]
                    q["hybrid"] = [i for i, _ in found]
                    del q["bm25"]
    for p, _ in material.claims:
        if p.book not in of_book:
            continue
        mine = {u[:60] for _, u in p.units if len(u) > 25}
        row = torch.topk(of_book[p.book] @ vectors[p.number], 48).indices.tolist()
        p.near = [i for i in row if not mine & {u[:60] for _, u in material.books[p.book][i].units}]
    return candidates, vectors


@torch.no_grad()
def teach(teacher, vectors, batch, heat=.03):
    """What the embedder thinks of the passages of every group."""
    rows = []
    for ids in batch["ids"][::GROUP]:
        rows.append(ids[:int(np.argmax(ids == EOS)) + 1].tolist())
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        q = teacher.encode(padded(rows))[:, 0]
    q = F.normalize(q.float(), dim=-1)
    p = vectors[torch.from_numpy(batch["passage"]).to(DEVICE)].view(len(rows), GROUP, -1)
    return torch.softmax(torch.einsum("gd,gnd->gn", q, p) / heat, -1)


def collate_scored(entries):
    """Arrays of inputs that the teacher has scored; units that are not there are NaN."""
    size = (max(len(ids) for ids, _, _ in entries) + 15) // 16 * 16
    ids = np.full((len(entries), size), PAD, dtype=np.int32)
    units = np.full((len(entries), size), np.nan, dtype=np.float32)
    for k, (tokens, places, (_, scores)) in enumerate(entries):
        ids[k, :len(tokens)] = tokens
        units[k, places] = scores
    return {"ids": ids, "wanted_units": units, "wanted": np.stack([first for _, _, (first, _) in entries]).astype(np.float32)}


def produce(material, pool, sizes, progress, seed, queue):
    """A worker: draws steps for ever, from the material and, if there is one, from the teacher's pool."""
    rng = np.random.default_rng(seed)

    def stretch(kind, count):  # the pool is sorted by length: neighbours need little padding
        at = int(rng.integers(0, max(1, len(pool[kind]) - count)))
        return pool[kind][at:at + count]
    for step in batches(Sampler(material, seed), lambda: progress.value, *sizes):
        if pool:
            step += (collate_scored([e for g in stretch("group", 64) for e in g]), collate_scored(stretch("claim", 256)), collate_scored(stretch("question", 128)))
        queue.put(step)


def labelled(first, b):
    """The losses of what is known about whole inputs: whether they answer, and whether they support the claim."""
    known = (b["answerable"] >= 0).float() * b["weight"]
    answerable = F.binary_cross_entropy_with_logits(first[:, 1], b["answerable"].clamp(min=0), reduction="none")
    parts = {"answerable": (answerable * known).sum() / known.sum().clamp(min=1)}
    known = (b["support"] >= 0).float() * b["weight"]
    logp = F.log_softmax(first[:, 2:5], -1)
    # Label 3 means: wrong, be it contradicted or not mentioned.
    either = torch.logsumexp(logp[:, 1:], -1)
    exact = logp.gather(1, b["support"].clamp(0, 2)[:, None])[:, 0]
    parts["support"] = -(torch.where(b["support"] == 3, either, exact) * known).sum() / known.sum().clamp(min=1)
    return parts


def losses(model, batch, wanted=None):
    """The loss of one batch and its parts."""
    b = {k: torch.from_numpy(v).to(DEVICE, non_blocking=True) for k, v in batch.items()}
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        first, token = model(b["ids"].long())
    parts = {}
    weight = b["weight"]
    groups = wanted is not None
    if groups:
        logp = F.log_softmax(first[:, 0].view(-1, GROUP), -1)
        known = b["labelled"].view(-1, GROUP)[:, 0]
        parts["rank"] = -(logp[:, 0] * known).sum() / known.sum().clamp(min=1)
        # Where nothing is known the embedder teaches alone; elsewhere it helps a little.
        trust = 1 - .6 * known
        parts["taught"] = ((wanted * (wanted.clamp(min=1e-6).log() - logp)).sum(-1) * trust).mean()
    parts.update(labelled(first, b))
    for k, name in ((0, "units"), (1, "changed")):
        target = b[name].float()
        known = (target >= 0).float() * (1 + target.clamp(min=0)) * weight[:, None]
        parts[name] = (F.binary_cross_entropy_with_logits(token[:, :, k], target.clamp(min=0), reduction="none") * known).sum() / known.sum().clamp(min=1)
    # The unit that answers must stand out among the units of its passage.
    marked, right = b["units"] >= 0, b["units"] == 1
    some = (right.any(1) & (marked & ~right).any(1)).float() * weight
    scores = token[:, :, 0].masked_fill(~marked, -1e4)
    best = torch.logsumexp(scores.masked_fill(~right, -1e4), 1) - torch.logsumexp(scores, 1)
    parts["choice"] = -(best.clamp(min=-30) * some).sum() / some.sum().clamp(min=1)
    share = {"rank": 1., "taught": 1.5, "choice": .3, "answerable": 1. if not groups else .5, "support": 1.5, "units": .7, "changed": .7}
    return sum(share[k] * v for k, v in parts.items()), parts


def taught(model, batch, kind):
    """The difference between the reader's scores and the teacher's; `kind` says which of them mean something."""
    b = {k: torch.from_numpy(v).to(DEVICE, non_blocking=True) for k, v in batch.items()}
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        first, token = model(b["ids"].long())
    wanted, parts = b["wanted"], {}
    if kind == "support":
        parts["support"] = F.kl_div(F.log_softmax(first[:, 2:5], -1), F.log_softmax(wanted[:, 2:5], -1), reduction="batchmean", log_target=True)
        return 1.5 * parts["support"], parts
    if kind == "rank":
        shape = (-1, GROUP)
        parts["rank"] = F.kl_div(F.log_softmax(first[:, 0].view(shape), -1), F.log_softmax(wanted[:, 0].view(shape), -1), reduction="batchmean", log_target=True)
    sure = torch.sigmoid(wanted[:, 1])
    parts["answerable"] = F.binary_cross_entropy_with_logits(first[:, 1], sure)
    marked = ~torch.isnan(b["wanted_units"])
    scores, target = token[:, :, 0], b["wanted_units"].nan_to_num(-12.)
    parts["units"] = (F.binary_cross_entropy_with_logits(scores, torch.sigmoid(target), reduction="none") * marked).sum() / marked.sum()
    gap = F.kl_div(F.log_softmax(scores.masked_fill(~marked, -1e4), -1), F.log_softmax(target.masked_fill(~marked, -1e4), -1), reduction="none", log_target=True).sum(-1)
    parts["choice"] = (gap * sure).sum() / sure.sum().clamp(min=1)
    share = {"rank": 1., "answerable": 1., "units": .7, "choice": .6}
    return sum(share[k] * v for k, v in parts.items()), parts


def runner(model):
    @torch.no_grad()
    def run(inputs):
        model.eval()
        found = [None] * len(inputs)
        order = sorted(range(len(inputs)), key=lambda k: len(inputs[k][0]))
        for at in range(0, len(order), 256):
            part = order[at:at + 256]
            first, token = model(padded([inputs[k][0] for k in part]))
            support = torch.softmax(first[:, 2:5], -1).tolist()
            first, units = first.tolist(), token[:, :, 0].tolist()
            for row, k in enumerate(part):
                found[k] = {"rank": first[row][0], "answerable": first[row][1], "support": support[row],
                            "units": [units[row][place] for place, _ in inputs[k][1]]}
        return found
    return run


def save(weights, folder):
    """float16, in parts of at most 15 MB."""
    part, size, number = {}, 0, 0
    for name, value in weights.items():
        value = value.astype(np.float16)
        if part and size + value.nbytes > 15_000_000:
            np.savez(os.path.join(folder, f"weights-{number}.npz"), **part)
            part, size, number = {}, 0, number + 1
        part[name] = value
        size += value.nbytes
    np.savez(os.path.join(folder, f"weights-{number}.npz"), **part)


def main():
    p = argparse.ArgumentParser()
    for name in ("data", "embedder", "tokenizer", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--start", help="weights of an earlier stage, packed by export.py; without it the embedder's own")
    p.add_argument("--minutes", type=float, default=7)
    p.add_argument("--rate", type=float, default=2e-4)
    p.add_argument("--from-progress", type=float, default=0., help="where the mixture of examples begins")
    p.add_argument("--pool", help="inputs scored by the teacher (teacher.py label)")
    p.add_argument("--workers", type=int, default=15)
    p.add_argument("--every", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    begun = time.time()
    torch.manual_seed(a.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    coder = Coder(a.tokenizer)
    data = json.load(gzip.open(a.data + "/train.json.gz", "rt"))
    evaluation = json.load(gzip.open(a.data + "/eval.json.gz", "rt"))
    material = Material(data, coder)
    origin, words = load_embedder(a.embedder)
    print(f"{time.time() - begun:.0f} s: {len(material.open)} passages, {len(material.claims)} passages with claims", flush=True)
    teacher = Reader(origin, words).to(DEVICE).eval()
    candidates, vectors = neighbours(teacher, material, data, evaluation)
    json.dump(candidates, open(os.path.join(a.out, "candidates.json"), "w"))
    for b in material.books.values():
        for x in b:
            x._ctx = None
    print(f"{time.time() - begun:.0f} s: neighbours", flush=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

    model = Reader(load_start(a.start) if a.start else origin, words).to(DEVICE)
    plain = [q for n, q in model.named_parameters() if q.ndim < 2]
    heavy = [q for n, q in model.named_parameters() if q.ndim >= 2]
    optimizer = torch.optim.AdamW([{"params": heavy, "weight_decay": .01}, {"params": plain, "weight_decay": 0.}], lr=a.rate, betas=(.9, .98), eps=1e-6, fused=DEVICE == "cuda")
    progress = multiprocessing.get_context("fork").Value("d", a.from_progress)
    forked = multiprocessing.get_context("fork")
    queue = forked.Queue(maxsize=64)
    pool, sizes = None, (320, 160, 64)
    if a.pool:
        pool, sizes = pickle.load(open(a.pool, "rb")), (160, 96, 32)
        for kind, entries in pool.items():
            entries.sort(key=lambda e: max(len(x[0]) for x in e) if kind == "group" else len(e[0]))
    workers = [forked.Process(target=produce, args=(material, pool, sizes, progress, a.seed * 1000 + k, queue), daemon=True) for k in range(a.workers)]
    for worker in workers:
        worker.start()
    books = data["books"]
    books = {k: b["passages"] for k, b in books.items()}
    start, step, sums, waited, checks = time.time(), 0, {}, 0., [.5, 2.]
    while True:
        done = (time.time() - start) / (a.minutes * 60)
        if done >= 1:
            break
        progress.value = a.from_progress + (1 - a.from_progress) * done
        rate = a.rate * min(1, done / .05 + .02) * min(1, (1 - done) / .9 + 1e-3)
        for g in optimizer.param_groups:
            g["lr"] = rate
        model.train()
        t = time.time()
        parts = queue.get(timeout=120)
        waited += time.time() - t
        optimizer.zero_grad(set_to_none=True)
        for name, batch in zip("cqr", parts):
            loss, found = losses(model, batch, teach(teacher, vectors, batch) if name == "r" else None)
            loss.backward()
            for k, v in found.items():
                if name + k in ("csupport", "cchanged", "cunits", "qanswerable", "qunits", "rrank", "rtaught", "rchoice", "runits", "ranswerable"):
                    sums[name + "." + k] = sums.get(name + "." + k, 0) + v.detach()
        for kind, batch in zip(("rank", "support", "answerable"), parts[3:]):
            loss, found = taught(model, batch, kind)
            loss.backward()
            for k, v in found.items():
                sums["t." + kind + "." + k] = sums.get("t." + kind + "." + k, 0) + v.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.)
        optimizer.step()
        step += 1
        if step % a.every == 0:
            print(f"{time.time() - begun:.0f} s step {step} rate {rate:.1e} waited {waited:.0f} s " +
                  " ".join(f"{k} {float(v) / a.every:.3f}" for k, v in sums.items()), flush=True)
            sums = {}
        if done > checks[0]:
            checks.pop(0)
            t = time.time()
            r = evaluate.everything(runner(model), coder, evaluation, books, candidates, ["claims", "written_claims", "questions", "written_questions"])
            few = {part: {k: r[part][k] for k in ("auroc", "hard_auroc", "three_way")} for part in ("claims", "written_claims")}
            print("check", json.dumps(dict(few, questions=r["questions"], written_questions=r["written_questions"])), flush=True)
            start += time.time() - t
    print(f"{time.time() - begun:.0f} s: {step} steps done", flush=True)
    for worker in workers:
        worker.terminate()
    save(model.weights(), a.out)
    result = evaluate.everything(runner(model), coder, evaluation, books, candidates,
                                 ["claims", "written_claims", "pairs", "squad", "questions", "written_questions"])
    json.dump(result, open(os.path.join(a.out, "result.json"), "w"), indent=1)
    for k, v in result.items():
        print(k, json.dumps(v), flush=True)
    print(f"{time.time() - begun:.0f} s: end", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
