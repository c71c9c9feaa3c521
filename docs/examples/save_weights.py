#!/usr/bin/env python3
"""Writes weights as safetensors, for `iliad model import`. It is the counterpart of load_checkpoint.py.

    python3 save_weights.py iliad-data/runs/RUN/best.safetensors weights.safetensors              the policy's weights, as they are
    python3 save_weights.py best.safetensors weights.safetensors --scale 0.5                      with every number halved
    iliad model import weights.safetensors --like iliad-data/runs/RUN/best.safetensors -o iliad-data/runs/tuned

It needs the standard library alone. A program that has PyTorch calls `write(path, state_dict)` with its own state dictionary, or uses
`safetensors.torch.save_file`, which writes the same file. docs/models.md says what the tensors are called.
"""

import argparse
import array
import json
import struct
import sys

from load_checkpoint import policy, read


def numbers(value):
    """The shape of a tensor and its numbers as little-endian float32: of PyTorch, of NumPy, or a pair of a shape and a list."""
    if isinstance(value, tuple):
        shape, values = value
        flat = array.array("f", values)
    else:
        shape = list(value.shape)
        flat = array.array("f", value.reshape(-1).tolist())
    if sys.byteorder == "big":
        flat.byteswap()
    return list(shape), flat.tobytes()


def write(path, tensors):
    """Writes a dictionary of tensors as a safetensors file."""
    header, data = {}, bytearray()
    for name in sorted(tensors):
        shape, content = numbers(tensors[name])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.write(data)


def floats(kind, content):
    """The numbers of a tensor's bytes."""
    letters = {"F64": "d", "F32": "f", "F16": "e"}
    if kind not in letters:
        sys.exit(f"a tensor has the type {kind}; this example reads {', '.join(letters)}")
    size = struct.calcsize(f"<{letters[kind]}")
    return list(struct.unpack(f"<{len(content) // size}{letters[kind]}", content))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a checkpoint or a model")
    parser.add_argument("output", help="the safetensors file to write")
    parser.add_argument("--scale", type=float, default=1.0, help="what every number is multiplied by")
    options = parser.parse_args()
    _, tensors = read(options.file)
    prefix = policy(tensors)
    weights = {}
    for name, (kind, shape, content) in tensors.items():
        if name.startswith(prefix):
            weights[name.removeprefix(prefix)] = (shape, [options.scale * x for x in floats(kind, content)])
    write(options.output, weights)
    print(f"{len(weights)} tensors in {options.output}")


if __name__ == "__main__":
    main()
