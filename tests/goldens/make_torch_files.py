"""Makes tests/data/store/torch and tests/data/train/hf/torch: what torch.save makes of tensors that other goldens hold.

Needs: pip install torch==2.11.0 numpy==2.4.6 safetensors==0.8.0 ai2-olmo==0.6.0
Run:   python3 tests/goldens/make_torch_files.py, after make_safetensors.py and make_hf.py

store/torch/reference.pt has the tensors of store/reference.safetensors as a module's state_dict has them; views.pt those that share a
storage, a Parameter, and dicts and lists in dicts; attributes.pt those that have attributes. The others are to be refused.
train/hf/torch/model.pt has the weights of olmo1_layout under FSDP's names, its *.bin those of olmo1 in two shards, in fp16 where
that is exact.
"""

import collections
import json
import pathlib

import torch
from olmo.safetensors_util import safetensors_file_to_state_dict
from safetensors.torch import load_file

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def make_store(folder):
    reference = collections.OrderedDict(load_file(DATA / "store/reference.safetensors"))
    reference._metadata = {"": {"version": 1}}
    torch.save(reference, folder / "reference.pt")
    whole = torch.arange(12, dtype=torch.float32)
    torch.save({"state": {0: {"first": whole[:4], "last": whole[4:].reshape(2, 4), "step": 3},
                          "a.weight": {"parameter": torch.nn.Parameter(torch.ones(2))}},
                "groups": [{"lr": 0.5, "params": [0]}, whole], "step": 7, "name": "x", "none": None, "tuple": (1, 2.5)},
               folder / "views.pt")
    tensor, parameter = whole.clone(), torch.nn.Parameter(torch.ones(2))
    tensor._has_been_cloned = parameter._is_sharded = True  # as FSDP marks them
    torch.save({"tensor": tensor, "parameter": parameter}, folder / "attributes.pt")
    torch.save({"x": whole.reshape(3, 4).t()}, folder / "transposed.pt")
    torch.save({"x": torch.eye(2).to_sparse()}, folder / "sparse.pt")
    torch.save({"x": torch.zeros(2, dtype=torch.complex64)}, folder / "complex.pt")
    torch.save([whole], folder / "list.pt")
    torch.save({"x": whole}, folder / "before_1_6.pt", _use_new_zipfile_serialization=False)


def make_models(folder):
    layout = safetensors_file_to_state_dict(DATA / "train/hf/olmo1_layout/model.safetensors")
    torch.save({"_fsdp_wrapped_module." + name: tensor for name, tensor in layout.items()}, folder / "model.pt")
    ours = load_file(DATA / "train/hf/olmo1/model.safetensors")
    names = sorted(ours)
    weight_map = {}
    for i, part in enumerate((names[:3], names[3:])):
        file = f"pytorch_model-{i + 1:05}-of-00002.bin"
        halves = {name: ours[name].half() for name in part}
        torch.save({name: h if torch.equal(h.float(), ours[name]) else ours[name] for name, h in halves.items()}, folder / file)
        weight_map |= {name: file for name in part}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}, indent=2) + "\n")


def main():
    for name, make in (("store/torch", make_store), ("train/hf/torch", make_models)):
        (DATA / name).mkdir(parents=True, exist_ok=True)
        make(DATA / name)


if __name__ == "__main__":
    main()
