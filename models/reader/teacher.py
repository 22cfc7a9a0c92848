"""A larger model that learns from the same data and then teaches the reader.

The teacher is Qwen2.5-Coder-0.5B-Instruct with the reader's five outputs. It learns to read from the written
questions and claims, and then scores a large pool of pairs, from which the reader learns (`train.py --pool`). It is not
needed to use or to export the reader.

python teacher.py pack --gguf qwen.gguf --data PREPARED --out FOLDER       its weights, in parts that can be copied one by one
python teacher.py train --weights FOLDER --data PREPARED … --out FILE      learns to read (GPU)
python teacher.py label --teacher FILE … --out pool.pkl                    scores the pool (GPU)

Reading the parts again needs `constants.py`, `lazy.py` and `quants.py` of the gguf package.
"""
import argparse
import concurrent.futures
import glob
import gzip
import json
import multiprocessing
import os
import pickle
import random
import time

import numpy as np

import rules
from samples import GROUP, Material, Sampler
from text import EOS, Coder

WIDTH, LAYERS, HEADS, SHARED, INNER = 896, 24, 14, 2, 4864
SIZE = WIDTH // HEADS
QUERY_LIMIT, HEADING_LIMIT, LIMIT = 110, 56, 440
END, UNIT, NEW_LINE = 151643, 151645, 198  # <|endoftext|>, <|im_end|> (marks the end of a unit) and "\n" of its vocabulary


# ---- its weights and its words -------------------------------------------------------------------------------------

def pack(a):
    """Copies the quantized layers and the vectors of the words that the data use into parts of at most `size` MB."""
    from gguf import GGUFReader
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    reader = GGUFReader(a.gguf)
    words = reader.fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in reader.fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, merges))
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    os.makedirs(a.out, exist_ok=True)
    tokenizer.save(a.out + "/words.json")
    used = set(range(24000)) | {END, UNIT}
    texts = []

    def collect(x):
        if isinstance(x, str):
            texts.append(x)
        elif isinstance(x, dict):
            for k, v in x.items():
                if k not in ("bm25", "id"):
                    collect(v)
        elif isinstance(x, list):
            for v in x:
                collect(v)
    for name in ("train", "eval"):
        collect(json.load(gzip.open(f"{a.data}/{name}.json.gz", "rt")))
    texts = sorted(set(texts))
    for at in range(0, len(texts), 20000):
        for e in tokenizer.encode_batch(texts[at:at + 20000] + [" " + t for t in texts[at:at + 20000]], add_special_tokens=False):
            used.update(e.ids)
    used = np.array(sorted(used), dtype=np.int64)
    np.save(a.out + "/used.npy", used)
    index, part, number, size = [], b"", 0, a.size * 1_000_000
    # The vectors of the words come last: they alone depend on the data.
    for t in sorted(reader.tensors, key=lambda t: t.name == "token_embd.weight"):
        if t.name == "output.weight":
            continue
        data = t.data
        if t.name == "token_embd.weight":
            data = data[used]
        raw = np.ascontiguousarray(data).tobytes()
        shape = [int(x) for x in reversed(t.shape)]
        if t.name == "token_embd.weight":
            shape[0] = len(used)
        at = 0
        while at < len(raw):
            take = raw[at:at + size - len(part)]
            index.append([t.name, t.tensor_type.value, shape, number, len(part), len(take)])
            part += take
            at += len(take)
            if len(part) >= size:
                open(f"{a.out}/part{number}.bin", "wb").write(part)
                part, number = b"", number + 1
    open(f"{a.out}/part{number}.bin", "wb").write(part)
    json.dump(index, open(a.out + "/index.json", "w"))
    print(len(used), "words,", number + 1, "parts")


def unpack(folder):
    """name -> float32 array."""
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize
    raw, kinds = {}, {}
    parts = {int(os.path.basename(f)[4:-4]): open(f, "rb").read() for f in glob.glob(folder + "/part*.bin")}
    for name, kind, shape, number, at, size in json.load(open(folder + "/index.json")):
        raw[name] = raw.get(name, b"") + parts[number][at:at + size]
        kinds[name] = (kind, shape)

    def one(name):
        kind, shape = kinds[name]
        rows = np.frombuffer(raw[name], dtype=np.float32 if kind == 0 else np.uint8)
        return name, dequantize(rows.reshape(*shape[:-1], -1), GGMLQuantizationType(kind)).reshape(shape).astype(np.float32)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(pool.map(one, raw))


class Words:
    """Its tokenizer, with the numbers of the words that are kept."""

    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(folder + "/words.json")
        self.used = np.load(folder + "/used.npy")
        self.number = np.zeros(int(self.used.max()) + 1, dtype=np.int32)
        self.number[self.used] = np.arange(len(self.used))
        self.end, self.unit, self.new_line = (int(self.number[x]) for x in (END, UNIT, NEW_LINE))

    def encode(self, text):
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return self.number[[i if i < len(self.number) else NEW_LINE for i in ids]] if ids else np.zeros(0, np.int32)


class Retold:
    """An input of the reader as an input of the teacher: the text is taken back from the reader's tokens."""

    def __init__(self, words, coder):
        self.words, self.coder, self.known = words, coder, {}
        self.begin = words.encode("Query:")

    def piece(self, ids):
        key = np.asarray(ids, dtype=np.int32).tobytes()
        if key not in self.known:
            if len(self.known) > 400_000:
                self.known.clear()
            self.known[key] = self.words.encode(self.coder.tokenizer.decode([int(i) for i in ids], skip_special_tokens=False))
        return self.known[key]

    def __call__(self, ids, marks):
        """Its ids, and for every marker the place of the end of its unit (-1 where it was cut)."""
        ids = np.asarray(ids)
        ends = np.flatnonzero(ids == EOS)
        first = int(ends[0])
        query = self.piece(ids[1:first])[:QUERY_LIMIT]
        at = [m for m, _ in marks]
        stop = len(ids) - 1
        heading = self.piece(ids[first + 2:at[0] if at else stop])[-HEADING_LIMIT:]
        made = [self.begin, query, [self.words.new_line], heading]
        size, places = sum(map(len, made)), []
        for k, m in enumerate(at):
            unit = self.piece(ids[m + 1:at[k + 1] if k + 1 < len(at) else stop])
            room = LIMIT - 2 - size
            if room < 4:
                places.append(-1)
                continue
            unit = unit[:room]
            made += [unit, [self.words.unit]]
            size += len(unit) + 1
            places.append(size - 1)
        made.append([self.words.end])
        return np.concatenate([np.asarray(x, dtype=np.int32) for x in made]), places


# ---- the network ---------------------------------------------------------------------------------------------------

def network():
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))
            self.qkv = nn.Linear(WIDTH, WIDTH + 2 * SHARED * SIZE)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)
            self.wide = nn.Linear(WIDTH, 2 * INNER, bias=False)
            self.narrow = nn.Linear(INNER, WIDTH, bias=False)

        def forward(self, x, turn):
            b, t, _ = x.shape
            h = F.rms_norm(x, (WIDTH,), self.before.to(x.dtype), 1e-6)
            q, k, v = self.qkv(h).split([WIDTH, SHARED * SIZE, SHARED * SIZE], -1)
            q, k, v = (y.view(b, t, -1, SIZE).transpose(1, 2) for y in (q, k, v))
            q, k = turned(q, turn), turned(k, turn)
            k, v = (y[:, :, None].expand(-1, -1, HEADS // SHARED, -1, -1).reshape(b, HEADS, t, SIZE) for y in (k, v))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
            gate, up = self.wide(F.rms_norm(x, (WIDTH,), self.after.to(x.dtype), 1e-6)).chunk(2, -1)
            return x + self.narrow(F.silu(gate) * up)

    def turned(x, turn):
        cos, sin = turn
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat((-two, one), -1) * sin

    class Teacher(nn.Module):
        def __init__(self, count, layers=LAYERS):
            super().__init__()
            self.words = nn.Embedding(count, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.last = nn.Parameter(torch.ones(WIDTH))
            self.first, self.token = nn.Linear(WIDTH, 5), nn.Linear(WIDTH, 1)
            nn.init.normal_(self.first.weight, std=.01)
            nn.init.normal_(self.token.weight, std=.01)

        def turn(self, places, kind):
            speed = 1e6 ** (-torch.arange(0, SIZE, 2, device=places.device).float() / SIZE)
            angle = places[..., None].float() * speed
            angle = torch.cat((angle, angle), -1)
            return angle.cos().to(kind), angle.sin().to(kind)

        def encode(self, ids):
            """Inputs are padded at their end, and nothing looks ahead: no mask is needed."""
            x = self.words(ids).to(torch.bfloat16 if ids.is_cuda else self.words.weight.dtype)
            turn = self.turn(torch.arange(ids.shape[1], device=ids.device), x.dtype)
            for block in self.blocks:
                x = block(x, turn)
            return F.rms_norm(x, (WIDTH,), self.last.to(x.dtype), 1e-6)

        def forward(self, ids, lengths, rows, places):
            """Scores of every input and of every unit (given by row and place)."""
            x = self.encode(ids)
            return self.first(x[torch.arange(len(ids), device=ids.device), lengths - 1]).float(), self.token(x[rows, places]).float()[:, 0]

    return Teacher


def load(folder, device, layers=LAYERS):
    import torch
    w = unpack(folder)
    model = network()(w["token_embd.weight"].shape[0], layers)
    with torch.no_grad():
        model.words.weight.copy_(torch.from_numpy(w["token_embd.weight"]))
        model.last.copy_(torch.from_numpy(w["output_norm.weight"]))
        for n, block in enumerate(model.blocks):
            def get(name):
                return torch.from_numpy(w[f"blk.{n}.{name}"])
            block.before.copy_(get("attn_norm.weight"))
            block.after.copy_(get("ffn_norm.weight"))
            block.qkv.weight.copy_(torch.cat([get(f"attn_{x}.weight") for x in "qkv"]))
            block.qkv.bias.copy_(torch.cat([get(f"attn_{x}.bias") for x in "qkv"]))
            block.out.weight.copy_(get("attn_output.weight"))
            block.wide.weight.copy_(torch.cat([get("ffn_gate.weight"), get("ffn_up.weight")]))
            block.narrow.weight.copy_(get("ffn_down.weight"))
    return model.to(device)


# ---- learning ------------------------------------------------------------------------------------------------------

def collate(examples, retold):
    """Arrays of a batch in the teacher's words."""
    rows = [retold(e.ids, e.marks) for e in examples]
    size = (max(len(ids) for ids, _ in rows) + 15) // 16 * 16
    ids = np.full((len(rows), size), retold.words.end, dtype=np.int32)
    row, place, unit = [], [], []
    for k, ((one, places), e) in enumerate(zip(rows, examples)):
        ids[k, :len(one)] = one
        for at, (_, number) in zip(places, e.marks):
            if at >= 0:
                row.append(k)
                place.append(at)
                unit.append(-1 if e.units is None else int(number in e.units))
    return {"ids": ids, "lengths": np.array([len(i) for i, _ in rows]), "rows": np.array(row, dtype=np.int64), "places": np.array(place, dtype=np.int64),
            "units": np.array(unit, dtype=np.float32), "answerable": np.array([e.answerable for e in examples], dtype=np.float32),
            "support": np.array([e.support for e in examples], dtype=np.int64), "weight": np.array([e.weight for e in examples], dtype=np.float32),
            "labelled": np.array([e.labelled for e in examples], dtype=np.float32)}


def produce(material, words, seed, queue, claims, questions, groups, pool=4):
    """A worker: draws steps for ever."""
    sampler, retold = Sampler(material, seed), Retold(words, material.coder)

    def group():
        while True:
            g = sampler.group(.95)
            if g[0].labelled:
                return g
    while True:
        c = sorted((sampler.claim(.9) for _ in range(claims * pool)), key=lambda e: len(e.ids))
        q = sorted((sampler.question(.95) for _ in range(questions * pool)), key=lambda e: len(e.ids))
        g = sorted((group() for _ in range(groups * pool)), key=lambda g: max(len(e.ids) for e in g))
        for i in range(pool):
            queue.put((collate(c[i * claims:(i + 1) * claims], retold), collate(q[i * questions:(i + 1) * questions], retold),
                       collate([e for x in g[i * groups:(i + 1) * groups] for e in x], retold)))


def on_device(batch, device):
    import torch
    b = {k: torch.from_numpy(v).to(device, non_blocking=True) for k, v in batch.items()}
    b["ids"], b["lengths"] = b["ids"].long(), b["lengths"].long()
    return b


def losses(model, batch, groups, device):
    import torch
    import torch.nn.functional as F

    from train import labelled
    b = on_device(batch, device)
    with torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda"):
        first, token = model(b["ids"], b["lengths"], b["rows"], b["places"])
    weight, parts = b["weight"], {}
    if groups:
        scores = first[:, 0].view(-1, GROUP)
        unknown = b["labelled"].view(-1, GROUP) == 0
        unknown[:, 0] = False
        parts["rank"] = -F.log_softmax(scores.masked_fill(unknown, -1e4), -1)[:, 0].mean()
    parts.update(labelled(first, b))
    known = (b["units"] >= 0).float() * weight[b["rows"]]
    parts["units"] = (F.binary_cross_entropy_with_logits(token, b["units"].clamp(min=0), reduction="none") * known).sum() / known.sum().clamp(min=1)
    # The unit that answers must stand out among the units of its passage.
    n = len(first)
    top = torch.full((n,), -1e4, device=device).scatter_reduce(0, b["rows"], token.detach(), "amax")
    strength = (token - top[b["rows"]]).exp()
    whole = torch.zeros(n, device=device).scatter_add(0, b["rows"], strength)
    right = torch.zeros(n, device=device).scatter_add(0, b["rows"], strength * (b["units"] == 1))
    some = (right > 0).float() * weight
    parts["choice"] = -((right.clamp(min=1e-9) / whole.clamp(min=1e-9)).log() * some).sum() / some.sum().clamp(min=1)
    share = {"rank": 1., "answerable": 1. if not groups else .6, "support": 1.5, "units": .6, "choice": .6}
    return sum(share[k] * v for k, v in parts.items()), parts


def runner(model, retold, device):
    """Scores inputs of the reader, as evaluate.py wants them."""
    def run(inputs):
        found = scored(model, [retold(ids, marks) for ids, marks in inputs], retold.words, device)
        for f in found:
            e = np.exp(np.array(f["support"]) - max(f["support"]))
            f["support"] = (e / e.sum()).tolist()
        return found
    return run


def scored(model, rows, words, device, tokens=100_000):
    """The logits of inputs in the teacher's tokens: rank, answerable, support and units."""
    import torch
    model.eval()
    found, at = [None] * len(rows), 0
    with torch.no_grad():
        order = sorted(range(len(rows)), key=lambda k: len(rows[k][0]))
        while at < len(order):
            size = len(rows[order[at]][0])
            part = []
            while at < len(order) and (not part or (len(part) + 1) * max(size, len(rows[order[at]][0])) <= tokens):
                size = max(size, len(rows[order[at]][0]))
                part.append(order[at])
                at += 1
            ids = np.full((len(part), (size + 15) // 16 * 16), words.end, dtype=np.int64)
            row, place = [], []
            for k, number in enumerate(part):
                ids[k, :len(rows[number][0])] = rows[number][0]
                for p in rows[number][1]:
                    row.append(k)
                    place.append(max(p, 0))
            lengths = torch.tensor([len(rows[k][0]) for k in part], device=device)
            with torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda"):
                first, token = model(torch.from_numpy(ids).to(device), lengths, torch.tensor(row, device=device, dtype=torch.long), torch.tensor(place, device=device, dtype=torch.long))
            first, token, took = first.tolist(), token.tolist(), 0
            for k, number in enumerate(part):
                count = len(rows[number][1])
                units = [-12. if p < 0 else t for p, t in zip(rows[number][1], token[took:took + count])]
                took += count
                found[number] = {"rank": first[k][0], "answerable": first[k][1], "support": first[k][2:5], "units": units}
    return found


def train(a):
    import torch
    from torch import nn

    import evaluate
    from train import Reader, load_embedder, neighbours
    device = "cuda" if torch.cuda.is_available() else "cpu"
    begun = time.time()
    torch.manual_seed(a.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    coder, words = Coder(a.tokenizer), Words(a.weights)
    data = json.load(gzip.open(a.data + "/train.json.gz", "rt"))
    evaluation = json.load(gzip.open(a.data + "/eval.json.gz", "rt"))
    material = Material(data, coder)
    origin, table = load_embedder(a.embedder)
    candidates, _ = neighbours(Reader(origin, table).to(device).eval(), material, data, evaluation)
    print(f"{time.time() - begun:.0f} s: neighbours", flush=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    forked = multiprocessing.get_context("fork")
    queue = forked.Queue(maxsize=48)
    workers = [forked.Process(target=produce, args=(material, words, a.seed * 1000 + k, queue, a.claims, a.questions, a.groups), daemon=True) for k in range(a.workers)]
    for worker in workers:
        worker.start()
    model = load(a.weights, device, a.layers)
    print(f"{time.time() - begun:.0f} s: weights", flush=True)
    heads = [p for n, p in model.named_parameters() if n.startswith(("first.", "token."))]
    body = [p for n, p in model.named_parameters() if not n.startswith(("first.", "token.", "words."))]
    model.words.weight.requires_grad_(False)
    optimizer = torch.optim.AdamW([{"params": body, "rate": a.rate}, {"params": heads, "rate": a.rate * 20}], lr=a.rate, betas=(.9, .98), weight_decay=.01, fused=device == "cuda")
    retold = Retold(words, coder)
    start, step, sums, waited = time.time(), 0, {}, 0.
    while (done := (time.time() - start) / (a.minutes * 60)) < 1:
        speed = min(1, done / .06 + .02) * min(1, (1 - done) / .85 + 1e-3)
        for g in optimizer.param_groups:
            g["lr"] = g["rate"] * speed
        model.train()
        t = time.time()
        parts = queue.get(timeout=120)
        waited += time.time() - t
        optimizer.zero_grad(set_to_none=True)
        for name, batch in zip("cqr", parts):
            loss, found = losses(model, batch, name == "r", device)
            loss.backward()
            for k, v in found.items():
                if name + k in ("csupport", "qanswerable", "qchoice", "rrank", "rchoice", "ranswerable"):
                    sums[name + "." + k] = sums.get(name + "." + k, 0) + v.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.)
        optimizer.step()
        step += 1
        if step % a.every == 0:
            print(f"{time.time() - begun:.0f} s step {step} waited {waited:.0f} s " + " ".join(f"{k} {float(v) / a.every:.3f}" for k, v in sums.items()), flush=True)
            sums = {}
    print(f"{time.time() - begun:.0f} s: {step} steps done", flush=True)
    for worker in workers:
        worker.terminate()
    model = model.to(torch.bfloat16).eval()
    torch.save(model.state_dict(), a.out)
    books = {k: b["passages"] for k, b in data["books"].items()}
    run = runner(model, retold, device)
    for part in a.check.split(","):
        if part:
            print(json.dumps(evaluate.everything(run, coder, evaluation, books, candidates, [part])), flush=True)
            print(f"{time.time() - begun:.0f} s", flush=True)
    print(f"{time.time() - begun:.0f} s: end", flush=True)
    os._exit(0)


# ---- scoring a pool ------------------------------------------------------------------------------------------------

SHARED_STATE = {}
STRIDE = 128  # groups that are drawn and scored at a time; eight times as many claims or questions


def draw(task):
    """A worker: inputs of one kind and their tokens for the teacher. A task is a kind with either a seed or the texts and
    passages of groups."""
    kind, what = task
    sampler, retold, material = SHARED_STATE["sampler"], SHARED_STATE["retold"], SHARED_STATE["material"]
    if kind == "known":
        kind, parts = "group", [[sampler.example(text, material.all[n]) for n in numbers] for text, numbers in what]
    else:
        sampler.rng = rng = random.Random(what)
        parts = {"group": lambda: [sampler.group(rng.choice([.3, .6, .9])) for _ in range(STRIDE)],
                 "claim": lambda: [[sampler.claim(rng.choice([.3, .9, 1.]))] for _ in range(STRIDE * GROUP)],
                 "question": lambda: [[sampler.question(rng.choice([.3, .9, 1.]))] for _ in range(STRIDE * GROUP)]}[kind]()
    flat = [e for part in parts for e in part]
    return kind, [(e.ids.astype(np.uint16), [m for m, _ in e.marks]) for e in flat], [retold(e.ids, e.marks) for e in flat]


def known_groups(material, rng):
    """Every written question with its passages and the likeliest others of its book: (text, numbers of passages)."""
    for name, questions in material.questions.items():
        book = material.books[name]
        for q in questions:
            right = [i for i, _ in q["holding"]][:2]
            yield rules.noisy(q["question"], rng), [book[i].number for i in (right + [i for i in q["hybrid"] if i not in right])[:GROUP]]
    for p, text in [(p, q) for p, q, _ in material.written] + material.unanswered:
        near = p.near[:12]
        if len(near) >= GROUP - 1 and p.book in material.books:
            yield rules.noisy(text, rng), [p.number] + [material.books[p.book][i].number for i in rng.sample(near, GROUP - 1)]


def label(a):
    """The pool: groups of a question with eight passages, claims and questions with a passage, each with the teacher's scores."""
    import torch

    from train import Reader, load_embedder, neighbours
    device = "cuda" if torch.cuda.is_available() else "cpu"
    begun = time.time()
    coder, words = Coder(a.tokenizer), Words(a.weights)
    data = json.load(gzip.open(a.data + "/train.json.gz", "rt"))
    evaluation = json.load(gzip.open(a.data + "/eval.json.gz", "rt"))
    material = Material(data, coder)
    origin, table = load_embedder(a.embedder)
    neighbours(Reader(origin, table).to(device).eval(), material, data, evaluation)
    rng = random.Random(7)
    known = [g for g in known_groups(material, rng) if len(g[1]) == GROUP]
    rng.shuffle(known)
    tasks = [("known", known[k:k + STRIDE]) for k in range(0, len(known), STRIDE)]
    tasks += [(kind, 1000 * seed + at) for seed, (kind, count) in enumerate((("group", a.groups // STRIDE), ("claim", a.claims // (STRIDE * GROUP)), ("question", a.questions // (STRIDE * GROUP))), 7)
              for at in range(count)]
    rng.shuffle(tasks)
    print(f"{time.time() - begun:.0f} s: {len(known)} known groups, {len(tasks)} tasks", flush=True)
    model = network()(len(words.used), a.layers)
    model.load_state_dict(torch.load(a.teacher))
    model = model.to(device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
    SHARED_STATE.update(retold=Retold(words, coder), sampler=Sampler(material, 77), material=material)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    kept = {"group": [], "claim": [], "question": []}
    with multiprocessing.get_context("fork").Pool(a.workers) as pool:
        for number, (kind, inputs, rows) in enumerate(pool.imap_unordered(draw, tasks)):
            if time.time() - begun > a.minutes * 60:
                break
            out = [(np.array([o["rank"], o["answerable"], *o["support"]], dtype=np.float16), np.array(o["units"], dtype=np.float16))
                   for o in scored(model, rows, words, device)]
            packed = [(*i, o) for i, o in zip(inputs, out)]
            kept[kind] += [packed[k:k + GROUP] for k in range(0, len(packed), GROUP)] if kind == "group" else packed
            if number % 40 == 0:
                print(f"{time.time() - begun:.0f} s: {number + 1} of {len(tasks)}", flush=True)
        pool.terminate()
    pickle.dump(kept, open(a.out, "wb"))
    print(f"{time.time() - begun:.0f} s: {len(kept['group'])} groups, {len(kept['claim'])} claims, {len(kept['question'])} questions scored", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["pack", "train", "label"])
    for name in "gguf data out weights tokenizer embedder teacher".split():
        p.add_argument("--" + name)
    p.add_argument("--size", type=int, default=55, help="pack: megabytes of a part")
    p.add_argument("--minutes", type=float, default=5)
    p.add_argument("--rate", type=float, default=2e-5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--workers", type=int, default=14)
    p.add_argument("--layers", type=int, default=LAYERS)
    p.add_argument("--every", type=int, default=20)
    p.add_argument("--claims", type=int, default=96)
    p.add_argument("--questions", type=int, default=48)
    p.add_argument("--groups", type=int, default=14)
    p.add_argument("--check", default="claims,pairs,squad,questions")
    a = p.parse_args()
    globals()[a.what](a)


if __name__ == "__main__":
    main()
