"""Prints the tables of docs/scaling.md.

Every figure is computed from the constants below; nothing is measured here. Run it as
`python3 docs/scaling.py`. Change a constant, run it again and put the output in the page.

Sizes are decimal: 1 kB is 1,000 bytes, 1 GB is 10^9.
"""

import math

# One chunk. Four real documentation sets have 1,065 to 1,326 bytes and 52 to 74 distinct words.
PAYLOAD = 1_500  # bytes of text, title, headings, address and ids, as sent over the wire
TERMS = 80  # distinct terms of a passage
INDEXED = 50  # bytes of the fields Docent filters by: page and module
TOKENS = 225  # of a passage, for prices

# One point in Qdrant, from "Capacity Planning" in its documentation.
M = 16  # edges a node
LINKS = M * 2 * 4 * 1.2  # the graph: 2m links of four bytes, and a fifth for its upper layers
IDS = 52
SPARSE_STORED = TERMS * 8  # a number and a weight
SPARSE_INDEX = TERMS * 8 * 1.5  # always in memory
FIELD_INDEX = INDEXED * 2  # always in memory
TEXT_STORED = PAYLOAD * 1.5
WAL = 64e6  # bytes a shard, at most
EF_CONSTRUCT = 100  # the least candidates a graph search keeps
USABLE = 0.8  # of a node's memory
HEADROOM = 1.2  # of the disk, for temporary segments

# Docent.
GENERATIONS = 3  # the one that answers, the one before it, and the one being written
DEPTH = 400  # retrieval.depth
SHALLOW = 128  # the least depth at which Qdrant asks each shard for its share only
COUNTED = TERMS * 15  # bytes of a passage's terms while a collection is written
SEGMENTS = 4  # of a shard; Qdrant makes about as many as it has processors, up to eight

# Prices in US dollars: assumptions, to be replaced by yours.
MEMORY_MONTH = 6.00  # a GB of a memory-optimised machine, its processors included
DISK_MONTH = 0.10  # a GB of solid-state disk
ZONE_GB = 0.02  # a GB between availability zones, both directions together
EMBEDDING = {"bundled": 0.0, "OpenAI 3-small": 0.02, "Cohere v3": 0.10}  # a million tokens
MODEL_IN, MODEL_OUT = 0.15, 0.60  # a million tokens, gpt-4o-mini
QUESTION_TOKENS, PROMPT_TOKENS, ANSWER_TOKENS = 20, 1_500, 200

# Passages a second.
SPEED = {
    "bundled": (50.1, "measured on two cores, docs/performance.md"),
    "OpenAI 3-small": (1_000_000 / 60 / TOKENS, "at 1,000,000 tokens a minute"),
    "Cohere v3": (2_000 / 60, "at 2,000 inputs a minute"),
}

WIDTHS = [384, 1024, 1536]
SIZES = [100_000, 10_000_000, 1_000_000_000]
MACHINES = [4, 8, 16, 32, 64, 128, 256, 512]  # GB of memory


def quantized(width, kind):
    return {"none": 0, "scalar": width, "binary": width / 8}[kind]


def memory(width, kind, on_disk):
    """Bytes of memory for one chunk in one copy."""
    full = 0 if on_disk else width * 4
    return full + quantized(width, kind) + LINKS + SPARSE_INDEX + IDS + FIELD_INDEX


def disk(width, kind):
    """Bytes on the disk for one chunk in one copy."""
    vectors = width * 4 + quantized(width, kind) + LINKS
    return vectors + SPARSE_STORED + SPARSE_INDEX + TEXT_STORED + IDS + FIELD_INDEX


def layout(chunks, width):
    """What is recommended: quantization, on_disk, shards (none: two a node), copies."""
    if chunks <= 1_000_000:
        return "none", False, 1, 3
    if chunks <= 100_000_000 or width < 1000:
        return "scalar", True, None, 2
    return "binary", True, None, 2


def nodes(chunks, width):
    """Nodes and their memory: three of the smallest machine that will do, else more of the largest."""
    kind, on_disk, _, copies = layout(chunks, width)
    total = memory(width, kind, on_disk) * chunks * copies * GENERATIONS
    for machine in MACHINES:
        if total / 3 <= machine * 1e9 * USABLE:
            return 3, machine
    return math.ceil(total / (MACHINES[-1] * 1e9 * USABLE)), MACHINES[-1]


def per_shard(depth, shards):
    """How many candidates Qdrant asks of each shard.

    From SHALLOW on it asks for fewer than `depth`: as many as hold that shard's share of the best
    with a probability of 0.999 over all shards, with a fifth to spare. Its own table rounds up.
    """
    if shards == 1 or depth < SHALLOW:
        return depth
    mean, wanted = depth / shards * 1.2, 0.999 ** (1 / shards)
    term = covered = math.exp(-mean)
    count = 0
    while covered < wanted:
        count += 1
        term *= mean / count
        covered += term
    return min(count, depth)


def size(bytes_):
    for unit, power in [("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)]:
        if bytes_ >= 10**power:
            return f"{bytes_ / 10**power:.3g} {unit}"
    return f"{bytes_:.0f} B"


def dollars(amount):
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.2f}" if amount >= 0.01 else f"{amount:.1g}"


def count(number):
    return {100_000: "100 thousand", 10_000_000: "10 million", 1_000_000_000: "1 billion"}[number]


def table(title, head, rows):
    print(f"\n### {title}\n\n| {' | '.join(map(str, head))} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")


def one_chunk():
    def row(name, of):
        return [name] + [f"{of(width):,.0f}" for width in WIDTHS]

    head = ["bytes a chunk"] + [f"{width} wide" for width in WIDTHS]
    rows = [
        row("full vector, width × 4", lambda width: width * 4),
        row("scalar, width × 1", lambda width: width),
        row("binary, width ÷ 8", lambda width: width / 8),
        row("graph, m × 2 × 4 × 1.2", lambda _: LINKS),
        row("keywords, terms × 8", lambda _: SPARSE_STORED),
        row("index of keywords, terms × 8 × 1.5", lambda _: SPARSE_INDEX),
        row("texts on disk, payload × 1.5", lambda _: TEXT_STORED),
        row("ids, and the index of pages and modules", lambda _: IDS + FIELD_INDEX),
        row("**memory**: none", lambda width: memory(width, "none", False)),
        row("**memory**: scalar, on_disk", lambda width: memory(width, "scalar", True)),
        row("**memory**: binary, on_disk", lambda width: memory(width, "binary", True)),
        row("**disk**: none", lambda width: disk(width, "none")),
        row("**disk**: scalar", lambda width: disk(width, "scalar")),
    ]
    table("One chunk", head, rows)


def one_generation():
    head = ["chunks", "width", "memory: none", "scalar, on_disk", "binary, on_disk", "disk: none", "scalar"]
    rows = []
    for chunks in SIZES:
        for width in WIDTHS:
            kinds = [("none", False), ("scalar", True), ("binary", True)]
            cells = [size(chunks * memory(width, *kind)) for kind in kinds]
            cells += [size(chunks * disk(width, kind)) for kind in ["none", "scalar"]]
            rows.append([count(chunks), width] + cells)
    table("One generation, one copy", head, rows)


def clusters():
    head = ["chunks", "width", "quantization", "on_disk", "shards", "replicas", "nodes", "disk a node", "$ a month"]
    rows = []
    for chunks in SIZES:
        for width in WIDTHS:
            kind, on_disk, shards, copies = layout(chunks, width)
            number, machine = nodes(chunks, width)
            shards = shards or 2 * number
            stored = chunks * disk(width, kind) * copies + WAL * shards * copies
            each = stored * GENERATIONS * HEADROOM / number
            month = number * (machine * MEMORY_MONTH + each / 1e9 * DISK_MONTH)
            of = f"{number} × {machine} GB"
            answer = str(on_disk).lower()
            rows.append([count(chunks), width, kind, answer, shards, copies, of, size(each), dollars(month)])
    table("The cluster", head, rows)


def questions():
    head = [
        "shards × copies, nodes", "depth", "to Docent", "questions/s on 1 Gbit/s", "asked of a shard",
        "between nodes", "comparisons", "texts read",
    ]
    rows = []
    for shards, copies, number in [(1, 3, 3), (6, 2, 3), (44, 2, 22)]:
        for depth in [DEPTH, SHALLOW, 100]:
            each = per_shard(depth, shards)
            wire = 2 * depth * PAYLOAD
            remote = shards * (1 - copies / number) * each * 2 * PAYLOAD
            compared = shards * SEGMENTS * max(EF_CONSTRUCT, each) * M * 2
            rows.append([
                f"{shards} × {copies}, {number}", depth, size(wire), f"{125e6 / wire:,.0f}", each,
                size(remote) if remote else "nothing", f"{compared:,}", f"{shards * each * 2:,}",
            ])
    table("One question", head, rows)


def prices():
    model = PROMPT_TOKENS * MODEL_IN + ANSWER_TOKENS * MODEL_OUT
    rows = [[f"embedding, {name}", dollars(QUESTION_TOKENS * price)] for name, price in EMBEDDING.items()]
    rows += [[f"passages between zones, depth {depth}", dollars(2 * depth * PAYLOAD / 1e9 * ZONE_GB * 1e6)]
             for depth in [DEPTH, SHALLOW]]
    rows.append(["the model that writes", dollars(model)])
    table("A million questions", ["", "$"], rows)


def ingests():
    head = ["chunks"] + [f"{name}: time, $" for name in SPEED]
    head += [f"memory of the ingest: {width}" if width == WIDTHS[0] else width for width in WIDTHS]
    rows = []
    for chunks in SIZES:
        cells = [count(chunks)]
        for name, (speed, _) in SPEED.items():
            hours = chunks / speed / 3600
            time = f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.3g} days"
            cells.append(f"{time}, {dollars(chunks * TOKENS / 1e6 * EMBEDDING[name])}")
        # Three copies of the text, two of the vectors, and the counted terms.
        cells += [size(chunks * (3 * PAYLOAD + 2 * width * 4 + COUNTED)) for width in WIDTHS]
        rows.append(cells)
    table("Embedding a book once", head, rows)
    for name, (speed, how) in SPEED.items():
        print(f"- {name}: {speed:.1f} passages a second, {how}")


if __name__ == "__main__":
    for part in [one_chunk, one_generation, clusters, questions, prices, ingests]:
        part()
