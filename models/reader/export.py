"""Packs weights for the GPU machine, and turns trained weights into an int8 ONNX file.

python export.py pack --weights weights-0.npz weights-1.npz --out stage1.npz
    the weights of a stage as int8 per row, small enough to travel, for `train.py --start`
python export.py onnx --weights weights-0.npz weights-1.npz [--average stage1/weights-0.npz stage1/weights-1.npz] --embedder embedder.onnx --data PREPARED --tokenizer tokenizer.json --out FOLDER
    float.onnx and model.onnx (int8, activations smoothed over 160 passages of the training books)
python export.py mean --weights WEIGHTS --average WEIGHTS [--part .5] --out mean.npz
    the mean of two sets of weights, or of those of a reader's ONNX file; --part is the weight of the second
python export.py unquantize --weights model.onnx --out model.onnx
    the last two down-projections in float
python export.py share --weights model.onnx --out models/reader/model.onnx
    the model as the program carries it: without the word table, which is the embedder's; it takes the vectors of the words instead
python export.py golden --weights model.onnx --tokenizer tokenizer.json --out golden.json
    tokens and outputs of some inputs, to test another implementation: the queries and passages stand in the file that is replaced

The graph uses plain operators only: Gather, Cast, Mul, Add, MatMul, LayerNormalization, Gelu, Softmax, Reshape, Transpose,
Split, Slice, Shape, and what quantize_dynamic adds. It has no attention mask: the program runs one text at a time.
"""
import argparse
import gzip
import json
import os
import random

import numpy as np

WIDTH, LAYERS, HEADS, SIZE = 384, 6, 12, 32


def load(paths):
    """Weights of train.py, or of a reader's ONNX file."""
    w = {}
    for path in paths:
        if path.endswith(".onnx"):
            w.update(unpacked(path))
            continue
        z = np.load(path)
        w.update({k: z[k].astype(np.float32) for k in z.files})
    return w


def unpacked(path):
    """The weights of a reader's int8 ONNX file; its smoothing factors are taken back. The head `changed` is not in it."""
    import onnx
    from onnx import numpy_helper
    z = {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}
    w = {"pos": z["positions"], "emb_ln.w": z["norm_g"], "emb_ln.b": z["norm_b"]}
    for n in range(LAYERS):
        for x in ("qkv", "ao", "f1", "f2"):
            name = f"layer{n}_{x}"
            weight = z[name + "_w_quantized"].astype(np.float32) * z[name + "_w_scale"] * z[name + "_mm_smooth"][:, None]
            w[f"l{n}.{x}.w"], w[f"l{n}.{x}.b"] = np.ascontiguousarray(weight.T), z[name + "_bias"]
        for x, name in (("aln", "norm1"), ("fln", "norm2")):
            w[f"l{n}.{x}.w"], w[f"l{n}.{x}.b"] = z[f"layer{n}_{name}_g"], z[f"layer{n}_{name}_b"]
    heads = ("rank", "answerable", "support")
    w["first.w"] = np.concatenate([z[h + "_head"].T for h in heads])
    w["first.b"] = np.concatenate([z[h + "_head_bias"] for h in heads])
    changed = np.random.default_rng(0).normal(0, .02, (1, WIDTH))
    w["token.w"], w["token.b"] = np.concatenate([z["units_head"].T, changed]), np.concatenate([z["units_head_bias"], [0]])
    return {k: np.array(v, dtype=np.float32) for k, v in w.items()}


def mean(a):
    one, other = load(a.weights), load(a.average)
    np.savez(a.out, **{k: v + a.part * (other[k] - v) for k, v in one.items()})


def pack(a):
    made = {}
    for name, value in load(a.weights).items():
        if value.ndim == 2 and value.size > 5000:
            scale = np.maximum(np.abs(value).max(1, keepdims=True) / 127, 1e-12)
            made[name + ".q8"] = np.clip(np.round(value / scale), -127, 127).astype(np.int8)
            made[name + ".scale"] = scale.astype(np.float32)
        else:
            made[name] = value.astype(np.float32)
    np.savez(a.out, **made)
    print(a.out, os.path.getsize(a.out))


def build(w, words, scales, path):
    import onnx
    from onnx import TensorProto as T
    from onnx import helper, numpy_helper
    nodes, inits = [], []

    def const(name, value, kind=np.float32):
        inits.append(numpy_helper.from_array(np.array(value, dtype=kind, order="C"), name))
        return name

    def op(kind, inputs, name, **more):
        nodes.append(helper.make_node(kind, inputs, [name], **more))
        return name

    def norm(x, source, name):
        const(name + "_g", w[source + ".w"]), const(name + "_b", w[source + ".b"])
        return op("LayerNormalization", [x, name + "_g", name + "_b"], name, axis=-1, epsilon=1e-12)

    def linear(x, source, name):
        const(name + "_w", w[source + ".w"].T), const(name + "_bias", w[source + ".b"])
        return op("Add", [op("MatMul", [x, name + "_w"], name + "_mm"), name + "_bias"], name)

    const("word_i8", words, np.int8), const("word_scale", scales)
    x = op("Cast", [op("Gather", ["word_i8", "input_ids"], "word_rows")], "word_float", to=T.FLOAT)
    x = op("Mul", [x, op("Gather", ["word_scale", "input_ids"], "word_row_scales")], "words")
    const("positions", w["pos"]), const("one", [1], np.int64), const("zero", [0], np.int64), const("first_token", 0, np.int64)
    length = op("Gather", [op("Shape", ["input_ids"], "shape"), "one"], "length")
    x = op("Add", [x, op("Slice", ["positions", "zero", length, "zero"], "places")], "embedded")
    x = norm(x, "emb_ln", "norm")
    const("split_heads", [0, 0, HEADS, SIZE], np.int64), const("join_heads", [0, 0, WIDTH], np.int64), const("head_scale", 1 / np.sqrt(SIZE))
    const("thirds", [WIDTH] * 3, np.int64)
    for i in range(LAYERS):
        n = f"layer{i}_"
        nodes.append(helper.make_node("Split", [linear(x, f"l{i}.qkv", n + "qkv"), "thirds"], [n + "q", n + "k", n + "v"], axis=-1))
        q, k, v = (op("Transpose", [op("Reshape", [n + c, "split_heads"], n + c + "_r")], n + c + "_t", perm=perm)
                   for c, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
        scores = op("MatMul", [op("Mul", [q, "head_scale"], n + "q_s"), k], n + "scores")
        mixed = op("MatMul", [op("Softmax", [scores], n + "attention", axis=-1), v], n + "mixed")
        mixed = op("Reshape", [op("Transpose", [mixed], n + "mixed_t", perm=[0, 2, 1, 3]), "join_heads"], n + "joined")
        x = norm(op("Add", [linear(mixed, f"l{i}.ao", n + "ao"), x], n + "sum1"), f"l{i}.aln", n + "norm1")
        inner = op("Gelu", [linear(x, f"l{i}.f1", n + "f1")], n + "gelu")
        x = norm(op("Add", [linear(inner, f"l{i}.f2", n + "f2"), x], n + "sum2"), f"l{i}.fln", n + "norm2")
    # Heads: rank, answerable and support from the first token, units from every token. They stay in float.
    first = op("Gather", [x, "first_token"], "first", axis=1)
    fw, fb, tw, tb = w["first.w"], w["first.b"], w["token.w"], w["token.b"]
    const("flat", [-1], np.int64)
    for name, rows in (("rank", [0]), ("answerable", [1]), ("support", [2, 3, 4])):
        const(name + "_head", fw[rows].T), const(name + "_head_bias", fb[rows])
        out = name if name == "support" else name + "_column"
        op("Add", [op("MatMul", [first, name + "_head"], name + "_head_mm"), name + "_head_bias"], out)
        if out != name:
            op("Reshape", [out, "flat"], name)
    const("units_head", tw[:1].T), const("units_head_bias", tb[:1]), const("per_token", [0, -1], np.int64)
    op("Reshape", [op("Add", [op("MatMul", [x, "units_head"], "units_head_mm"), "units_head_bias"], "units_column"), "per_token"], "units")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "reader", [value("input_ids", T.INT64, ["batch", "tokens"])],
                              [value("rank", T.FLOAT, ["batch"]), value("answerable", T.FLOAT, ["batch"]),
                               value("units", T.FLOAT, ["batch", "tokens"]), value("support", T.FLOAT, ["batch", 3])], inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return model


def smooth(model, inputs, alpha, path):
    """Moves large activations into the weights before both become int8 (SmoothQuant), then quantizes the big products."""
    import onnx
    import onnxruntime as ort
    from onnx import helper, numpy_helper
    from onnxruntime.quantization import QuantType, quantize_dynamic
    inits = {i.name: i for i in model.graph.initializer}
    products = [n for n in model.graph.node if n.op_type == "MatMul" and n.input[1] in inits and not n.input[1].endswith("_head")]
    sources = sorted({n.input[0] for n in products})
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    for s in sources:
        watched.graph.output.append(helper.make_tensor_value_info(s, 1, None))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(watched.SerializeToString(), options)
    peak = {s: np.zeros(1) for s in sources}
    for ids in inputs:
        feed = {"input_ids": np.array([ids], dtype=np.int64)}
        for s, v in zip(sources, session.run(sources, feed)):
            peak[s] = np.maximum(peak[s], np.abs(v[0]).max(0))
    made = onnx.ModelProto()
    made.CopyFrom(model)
    inits = {i.name: i for i in made.graph.initializer}
    names = {n.output[0] for n in products}
    nodes = []
    for n in made.graph.node:
        if n.output[0] in names:
            weight = numpy_helper.to_array(inits[n.input[1]])
            scale = np.maximum(np.maximum(peak[n.input[0]], 1e-3) ** alpha / np.maximum(np.abs(weight).max(1), 1e-4) ** (1 - alpha), 1e-4)
            scale = scale / np.exp(np.log(scale).mean())
            inits[n.input[1]].CopyFrom(numpy_helper.from_array((weight * scale[:, None]).astype(np.float32), n.input[1]))
            made.graph.initializer.append(numpy_helper.from_array((1 / scale).astype(np.float32), n.output[0] + "_smooth"))
            nodes.append(helper.make_node("Mul", [n.input[0], n.output[0] + "_smooth"], [n.output[0] + "_in"]))
            n.input[0] = n.output[0] + "_in"
        nodes.append(n)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    between = path + ".smoothed"
    for k, n in enumerate(made.graph.node):
        n.name = f"n{k}"
    onnx.save(made, between)
    keep = [n.name for n in made.graph.node if n.op_type == "MatMul" and n.input[1].endswith("_head")]
    quantize_dynamic(between, path, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"], nodes_to_exclude=keep,
                     extra_options={"MatMulConstBOnly": True})
    os.remove(between)


def export(a):
    import shutil

    import onnx
    import onnxruntime as ort
    from onnx import numpy_helper

    from text import Coder
    found = {i.name: numpy_helper.to_array(i) for i in onnx.load(a.embedder).graph.initializer if i.name in ("words", "word_scales")}
    os.makedirs(a.out, exist_ok=True)
    single = os.path.join(a.out, "float.onnx")
    w = load(a.weights)
    if a.average:
        other = load(a.average)
        w = {k: (v + other[k]) / 2 for k, v in w.items()}
    model = build(w, found["words"], found["word_scales"], single)
    coder, rng = Coder(a.tokenizer), random.Random(0)
    data = json.load(gzip.open(a.data + "/train.json.gz", "rt"))
    passages = [p for b in data["books"].values() if not b["validation"] for p in b["passages"]]
    rng.shuffle(passages)
    questions = [q["question"] for qs in data["questions"].values() for q in qs] + [c[0] for e in data["claims"] for c in e["claims"]]
    inputs = [coder.input(rng.choice(questions), p["path"], [u for _, u in p["units"]])[0] for p in passages[:160 + 40]]
    out = os.path.join(a.out, "model.onnx")
    smooth(model, inputs[:160], a.alpha, out)
    one, other = (ort.InferenceSession(x) for x in (single, out))
    gaps = []
    for ids in inputs[160:]:
        feed = {"input_ids": np.array([ids], dtype=np.int64)}
        gaps.append([float(np.abs(x - y).mean()) for x, y in zip(one.run(None, feed), other.run(None, feed))])
    print("mean gap float/int8 of rank, answerable, units, support:", np.round(np.mean(gaps, 0), 4), "size", os.path.getsize(out))
    print("operators:", sorted({n.op_type for n in onnx.load(out).graph.node}))
    shutil.copy(a.tokenizer, os.path.join(a.out, "tokenizer.json"))


def share(a):
    """Cuts off the word table: `word_vectors` (float [batch, tokens, 384]) takes the place of `input_ids`."""
    import onnx
    from onnx import TensorProto, helper
    model = onnx.load(a.weights[0])
    graph = model.graph
    table = {"word_rows", "word_row_scales", "word_float", "words"}
    nodes = [n for n in graph.node if not table & set(n.output)]
    for node in nodes:
        for at, name in enumerate(node.input):
            node.input[at] = {"words": "word_vectors", "input_ids": "word_vectors"}.get(name, name)
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [i for i in graph.initializer if i.name not in ("word_i8", "word_scale")]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.input[:]
    graph.input.extend([helper.make_tensor_value_info("word_vectors", TensorProto.FLOAT, ["batch", "tokens", WIDTH])])
    onnx.checker.check_model(model)
    onnx.save(model, a.out)
    print(a.out, os.path.getsize(a.out))


FLOAT_PRODUCTS = ["layer4_f2", "layer5_f2"]


def unquantize(a):
    """Multiplies in float where eight bits are too few: the input of the last two down-projections has outliers, and one
    scale for all tokens leaves the others hardly any bits. The weights stay int8 and are unpacked when the model is loaded."""
    import onnx
    from onnx import helper
    model = onnx.load(a.weights[0])
    graph = model.graph
    made = {o: n for n in graph.node for o in n.output}
    users = {}
    for n in graph.node:
        for i in n.input:
            users.setdefault(i, []).append(n)
    gone, nodes = set(), []
    for n in graph.node:
        product = n.op_type == "MatMulInteger" and n.input[1].removesuffix("_w_quantized")
        if product not in FLOAT_PRODUCTS:
            continue
        quantize, cast = made[n.input[0]], users[n.output[0]][0]
        scaled = users[cast.output[0]][0]
        factor = made[next(i for i in scaled.input if i != cast.output[0])]
        gone |= {id_of(x) for x in (quantize, n, cast, scaled, factor)}
        weight, scale = n.input[1], next(i for i in factor.input if i != quantize.output[1])
        nodes.append((scaled, [helper.make_node("DequantizeLinear", [weight, scale], [weight + "_float"], axis=1),
                               helper.make_node("MatMul", [quantize.input[0], weight + "_float"], [scaled.output[0]])]))
    instead = {id_of(at): new for at, new in nodes}
    kept = [x for n in graph.node for x in (instead.get(id_of(n)) or ([] if id_of(n) in gone else [n]))]
    del graph.node[:]
    graph.node.extend(kept)
    onnx.checker.check_model(model)
    onnx.save(model, a.out)
    print(a.out, os.path.getsize(a.out))


def id_of(node):
    return tuple(node.output)


def golden(a):
    """Writes tokens and outputs of the cases in a file anew."""
    import onnxruntime as ort

    from text import Coder, units
    file = json.load(open(a.out))
    coder, session = Coder(a.tokenizer), ort.InferenceSession(a.weights[0])
    for case in file["cases"]:
        ids, marks = coder.input(case["query"], case["heading"], [u for _, u in case["units"]])
        feed = {"input_ids": np.array([ids], dtype=np.int64)}
        rank, answerable, found, support = session.run(["rank", "answerable", "units", "support"], feed)
        case.update(ids=ids, marks=[at for at, _ in marks], rank=float(rank[0]), answerable=float(answerable[0]),
                    unit_logits=[float(found[0, at]) for at, _ in marks], support=support[0].tolist())
    assert units(file["passage"]) == [tuple(u) for u in file["cases"][0]["units"]]
    json.dump(file, open(a.out, "w"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["mean", "pack", "onnx", "unquantize", "share", "golden"])
    p.add_argument("--weights", nargs="+", required=True)
    p.add_argument("--average", nargs="+", help="weights of another stage of the same training; the mean of both is taken")
    p.add_argument("--part", type=float, default=.5)
    p.add_argument("--out", required=True)
    p.add_argument("--embedder")
    p.add_argument("--data")
    p.add_argument("--tokenizer")
    p.add_argument("--alpha", type=float, default=.8)
    a = p.parse_args()
    {"mean": mean, "pack": pack, "onnx": export, "unquantize": unquantize, "share": share, "golden": golden}[a.what](a)


if __name__ == "__main__":
    main()
