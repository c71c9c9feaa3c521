#!/usr/bin/env python3
"""Reads a checkpoint or a model of Iliad, and loads its weights into PyTorch.

    python3 load_checkpoint.py iliad-data/runs/RUN/best.safetensors            the weights of the policy, as PyTorch tensors
    python3 load_checkpoint.py --names model.safetensors                       names, types and shapes; needs no PyTorch

docs/models.md says what the tensors are called. The file is safetensors; where the package of that name is installed,
`safetensors.torch.load_file` reads the same tensors.
"""

import argparse
import hashlib
import json
import struct
import sys

TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "U8": "uint8", "U32": "uint32"}


def read(path):
    """The header of the program, and for each tensor its type, its shape and its bytes."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entries = json.loads(file.read(length))
        data = file.read()
    metadata = entries.pop("__metadata__", {})
    tensors = {}
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
    return json.loads(metadata.get("iliad", "{}")), tensors


def policy(names):
    """The prefix of the weights of the policy that a run reports: averaged ones where there are any."""
    for prefix in ("average.weights.", "theta.weights."):
        if any(name.startswith(prefix) for name in names):
            return prefix
    return ""  # a file of models, which has nothing else


def load(path):
    """The header, and the weights of the policy as a state dictionary of PyTorch tensors."""
    import torch

    header, tensors = read(path)
    prefix = policy(tensors)
    state = {}
    for name, (kind, shape, data) in tensors.items():
        if name.startswith(prefix):
            tensor = torch.frombuffer(bytearray(data), dtype=getattr(torch, TYPES[kind])).reshape(shape)
            state[name.removeprefix(prefix)] = tensor.float() if tensor.is_floating_point() else tensor
    return header, state


def lstm(state, name):
    """An LSTM of a state dictionary as a module. Gates stand in PyTorch's order, so that weights are taken as they are."""
    import torch

    rows, width = state[f"{name}.weight_ih"].shape
    module = torch.nn.LSTM(width, rows // 4, batch_first=True)
    weights = {f"{kind}_l0": state[f"{name}.{kind}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    module.load_state_dict(weights)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--names", action="store_true", help="list names, types and shapes alone")
    options = parser.parse_args()
    if options.names:
        for name, (kind, shape, data) in sorted(read(options.file)[1].items()):
            print(name, kind, "x".join(map(str, shape)) or "scalar", hashlib.sha256(data).hexdigest()[:12])
        return
    try:
        header, state = load(options.file)
    except ImportError:
        sys.exit("PyTorch is not installed here. --names lists the tensors without it.")
    print(f"{len(state)} tensors, {sum(tensor.numel() for tensor in state.values())} numbers, header: {', '.join(header)}")
    for name in sorted({name.removesuffix(".weight_ih") for name in state if name.endswith(".weight_ih")}):
        module = lstm(state, name)
        print(f"{name}: {module}")


if __name__ == "__main__":
    main()
