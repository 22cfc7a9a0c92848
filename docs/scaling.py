"""Prints the tables of docs/scaling.md.

Every figure is computed from the constants below; nothing is measured here. To update the page,
change a constant, run `python3 docs/scaling.py` and copy the output.

Sizes are decimal: 1 kB is 1,000 bytes, 1 GB is 10^9.
"""

import math

# One passage. Four real documentation sets have 1,065 to 1,326 bytes and 52 to 74 distinct words.
PAYLOAD = 1_500  # bytes of text, title, headings, URL and ids, as sent over the network
TERMS = 80  # distinct terms per passage
INDEXED = 50  # bytes of the fields that Docent filters by: page and module
TOKENS = 225  # tokens per passage, for prices

# One point in Qdrant, from "Capacity Planning" in its documentation.
M = 16  # edges per graph node
LINKS = M * 2 * 4 * 1.2  # the graph: 2m links of four bytes, plus a fifth for its upper layers
IDS = 52
SPARSE_STORED = TERMS * 8  # an index and a weight
SPARSE_INDEX = TERMS * 8 * 1.5  # always in memory
FIELD_INDEX = INDEXED * 2  # always in memory
TEXT_STORED = PAYLOAD * 1.5
WAL = 64e6  # maximum size of the write-ahead log per shard, in bytes
EF_CONSTRUCT = 100  # minimum number of candidates that a graph search keeps
USABLE = 0.8  # usable share of a node's memory
HEADROOM = 1.2  # extra disk space for temporary segments

# Docent.
GENERATIONS = 3  # the current one, the previous one, and the one being written
DEPTH = 400  # retrieval.depth
RANKED = 120  # bytes of a candidate over the network: id, score, row, and a page id of 35 bytes
LOADED = 20  # passages of the merged ranking whose text is read
SHALLOW = 128  # minimum depth at which Qdrant requests only a share from each shard
COUNTED = TERMS * 15  # bytes of a passage's terms while a collection is written
SEGMENTS = 4  # per shard; Qdrant creates about one per processor, up to eight

# Prices in US dollars. These are assumptions; replace them with yours.
MEMORY_MONTH = 6.00  # per GB of a memory-optimized machine, including its processors
DISK_MONTH = 0.10  # per GB of SSD
ZONE_GB = 0.02  # per GB between availability zones, both directions together
EMBEDDING = {"built-in": 0.0, "OpenAI 3-small": 0.02, "Cohere v3": 0.10}  # per million tokens
MODEL_IN, MODEL_OUT = 0.15, 0.60  # per million tokens, gpt-4o-mini
QUESTION_TOKENS, PROMPT_TOKENS, ANSWER_TOKENS = 20, 1_500, 200

# Passages per second.
SPEED = {
    "built-in": (50.1, "measured on two cores, docs/performance.md"),
    "OpenAI 3-small": (1_000_000 / 60 / TOKENS, "at 1,000,000 tokens per minute"),
    "Cohere v3": (2_000 / 60, "at 2,000 inputs per minute"),
}

WIDTHS = [384, 1024, 1536]
SIZES = [100_000, 10_000_000, 1_000_000_000]
MACHINES = [4, 8, 16, 32, 64, 128, 256, 512]  # GB of memory


def quantized(width, kind):
    return {"none": 0, "scalar": width, "binary": width / 8}[kind]


def memory(width, kind, on_disk):
    """Bytes of memory for one passage in one copy."""
    full = 0 if on_disk else width * 4
    return full + quantized(width, kind) + LINKS + SPARSE_INDEX + IDS + FIELD_INDEX


def disk(width, kind):
    """Bytes on disk for one passage in one copy."""
    vectors = width * 4 + quantized(width, kind) + LINKS
    return vectors + SPARSE_STORED + SPARSE_INDEX + TEXT_STORED + IDS + FIELD_INDEX


def layout(chunks, width):
    """The recommended layout: quantization, on_disk, shards (None: two per node), copies."""
    if chunks <= 1_000_000:
        return "none", False, 1, 3
    if chunks <= 100_000_000 or width < 1000:
        return "scalar", True, None, 2
    return "binary", True, None, 2


def nodes(chunks, width):
    """Nodes and their memory: three of the smallest sufficient machine, or more of the largest."""
    kind, on_disk, _, copies = layout(chunks, width)
    total = memory(width, kind, on_disk) * chunks * copies * GENERATIONS
    for machine in MACHINES:
        if total / 3 <= machine * 1e9 * USABLE:
            return 3, machine
    return math.ceil(total / (MACHINES[-1] * 1e9 * USABLE)), MACHINES[-1]


def per_shard(depth, shards):
    """How many candidates Qdrant requests from each shard.

    From SHALLOW on it requests fewer than `depth`: enough to contain each shard's share of the best
    candidates with a probability of 0.999 over all shards, plus a fifth. Its own table rounds up.
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


def transferred(depth):
    """Bytes that Docent receives for one search."""
    return 2 * depth * RANKED + LOADED * PAYLOAD


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

    head = ["bytes per passage"] + [f"{width} wide" for width in WIDTHS]
    rows = [
        row("full vector, width × 4", lambda width: width * 4),
        row("scalar, width × 1", lambda width: width),
        row("binary, width ÷ 8", lambda width: width / 8),
        row("graph, m × 2 × 4 × 1.2", lambda _: LINKS),
        row("keywords, terms × 8", lambda _: SPARSE_STORED),
        row("keyword index, terms × 8 × 1.5", lambda _: SPARSE_INDEX),
        row("text on disk, payload × 1.5", lambda _: TEXT_STORED),
        row("ids, page and module index", lambda _: IDS + FIELD_INDEX),
        row("**memory**: none", lambda width: memory(width, "none", False)),
        row("**memory**: scalar, on_disk", lambda width: memory(width, "scalar", True)),
        row("**memory**: binary, on_disk", lambda width: memory(width, "binary", True)),
        row("**disk**: none", lambda width: disk(width, "none")),
        row("**disk**: scalar", lambda width: disk(width, "scalar")),
    ]
    table("One passage", head, rows)


def one_generation():
    head = ["passages", "width", "memory: none", "scalar, on_disk", "binary, on_disk", "disk: none", "scalar"]
    rows = []
    for chunks in SIZES:
        for width in WIDTHS:
            kinds = [("none", False), ("scalar", True), ("binary", True)]
            cells = [size(chunks * memory(width, *kind)) for kind in kinds]
            cells += [size(chunks * disk(width, kind)) for kind in ["none", "scalar"]]
            rows.append([count(chunks), width] + cells)
    table("One generation, one copy", head, rows)


def clusters():
    head = [
        "passages", "width", "quantization", "on_disk", "shards", "replicas", "nodes", "disk per node", "$ per month",
    ]
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
        "shards × copies, nodes", "depth", "to Docent", "questions/s on 1 Gbit/s", "candidates per shard",
        "between nodes", "comparisons", "texts read",
    ]
    rows = []
    for shards, copies, number in [(1, 3, 3), (6, 2, 3), (44, 2, 22)]:
        for depth in [DEPTH, SHALLOW, 100]:
            each = per_shard(depth, shards)
            wire = transferred(depth)
            remote = (1 - copies / number) * (shards * each * 2 * RANKED + LOADED * PAYLOAD)
            compared = shards * SEGMENTS * max(EF_CONSTRUCT, each) * M * 2
            rows.append([
                f"{shards} × {copies}, {number}", depth, size(wire), f"{125e6 / wire:,.0f}", each,
                size(remote) if remote else "nothing", f"{compared:,}", f"{shards * each * 2 + LOADED:,}",
            ])
    table("One question", head, rows)


def prices():
    model = PROMPT_TOKENS * MODEL_IN + ANSWER_TOKENS * MODEL_OUT
    rows = [[f"embedding, {name}", dollars(QUESTION_TOKENS * price)] for name, price in EMBEDDING.items()]
    rows += [[f"passages between zones, depth {depth}", dollars(transferred(depth) / 1e9 * ZONE_GB * 1e6)]
             for depth in [DEPTH, SHALLOW]]
    rows.append(["the language model", dollars(model)])
    table("The price of a million questions", ["", "$"], rows)


def ingests():
    head = ["passages"] + [f"{name}: time, $" for name in SPEED]
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
        print(f"- {name}: {speed:.1f} passages per second, {how}")


if __name__ == "__main__":
    for part in [one_chunk, one_generation, clusters, questions, prices, ingests]:
        part()
