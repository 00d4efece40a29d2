"""Makes tests/data/store/reference.safetensors with the safetensors library itself, one tensor of each dtype we read.

Needs: pip install torch==2.11.0 numpy==2.4.6 safetensors==0.8.0
Run:   python3 tests/goldens/make_safetensors.py

Element i of every tensor is (i - 3) * 0.375 for floats (exact in bf16) and i - 3 for integers (i for U8).
"""

import pathlib

import torch
from safetensors.torch import save_file

FLOATS = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
INTEGERS = {"i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8}


def main():
    tensors = {}
    for name, dtype in FLOATS.items():
        tensors[f"{name}.weight"] = ((torch.arange(35, dtype=torch.float64) - 3) * 0.375).to(dtype).reshape(5, 7)
    for name, dtype in INTEGERS.items():
        first = 0 if dtype is torch.uint8 else -3
        tensors[f"{name}.weight"] = torch.arange(first, first + 6).to(dtype).reshape(1, 2, 3)
    tensors["scalar"] = torch.tensor(1.5)
    tensors["empty"] = torch.zeros(0, 4)
    path = pathlib.Path(__file__).resolve().parent.parent / "data" / "store" / "reference.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata={"format": "pt"})


if __name__ == "__main__":
    main()
