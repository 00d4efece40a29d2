"""Makes tests/data/ops/rope_scaling.json: cosines and sines of transformers' YaRN, as Olmo3RotaryEmbedding multiplies them.

Needs: transformers==5.24.0 torch==2.11.0
Run:   python3 tests/goldens/make_rope_scaling.py

The first case is OLMo 3 7B's.
"""

import json
import pathlib

import torch
from transformers import Olmo3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

POSITIONS = [0, 1, 2, 63, 1000, 4095]
CASES = [
    dict(head_dim=128, rope_theta=500000.0, factor=8.0, original_max_position_embeddings=8192, beta_fast=32.0, beta_slow=1.0,
         attention_factor=1.2079441541679836),
    dict(head_dim=32, rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64, beta_fast=4.0, beta_slow=0.5),
    dict(head_dim=16, rope_theta=10000.0, factor=1.0, original_max_position_embeddings=2, beta_fast=32.0, beta_slow=1.0),
]


def rows(case):
    scaling = {key: value for key, value in case.items() if key != "head_dim"} | {"rope_type": "yarn"}
    config = Olmo3Config(hidden_size=case["head_dim"], num_attention_heads=1, num_hidden_layers=4,
                         rope_parameters={"full_attention": scaling})
    frequencies, factor = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu", layer_type="full_attention")
    angles = torch.tensor(POSITIONS)[:, None].float() * frequencies
    return {"cos": (angles.cos() * factor).tolist(), "sin": (angles.sin() * factor).tolist()}


def main():
    out = pathlib.Path(__file__).resolve().parent.parent / "data" / "ops" / "rope_scaling.json"
    cases = [json.dumps(case | {"positions": POSITIONS} | rows(case)) for case in CASES]
    out.write_text("[\n" + ",\n".join(cases) + "\n]\n")


if __name__ == "__main__":
    main()
