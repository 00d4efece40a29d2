"""Makes tests/data/model/*.safetensors: small models of the reference implementation, with logits, losses and gradients.

Needs: ai2-olmo==0.6.0 torch==2.11.0 numpy safetensors. Run from the repository root: python3 tests/goldens/make_model.py
Each file holds `weight.<name>`, `grad.<name>` (of ce_sum/(B*T) + z_multiplier*sum(logsumexp^2)/(B*T)), ids, labels (shifted,
-100 where there is none), logits, ce and lse per token; its metadata holds `config` (JSON, OLMo's keys), z_multiplier and
the versions.
"""

import json
from pathlib import Path

import numpy as np
import olmo.version
import torch
import torch.nn.functional as F
from olmo.config import ActivationType, InitFnType, LayerNormType, ModelConfig
from olmo.model import OLMo
from safetensors.numpy import save_file

OUT = Path(__file__).resolve().parent.parent / "data" / "model"
BATCH, LENGTH, Z_MULTIPLIER = 2, 19, 1e-3

COMMON = dict(
    d_model=32, n_heads=4, n_layers=2, mlp_ratio=4, activation_type="swiglu", rope=True, max_sequence_length=32,
    include_bias=False, vocab_size=60, embedding_size=64, eos_token_id=59, pad_token_id=1, init_fn="mitchell",
)
MODELS = {
    # OLMo 1B: norms without weights, tied head.
    "tied": dict(weight_tying=True, layer_norm_type="default", layer_norm_with_affine=False),
    # OLMo 7B 0424 with everything else that OLMo's LayerNorm models can have; the clip is low enough to bite.
    "untied_clip": dict(
        weight_tying=False, layer_norm_type="default", layer_norm_with_affine=True, bias_for_layer_norm=True,
        attention_layer_norm=True, attention_layer_norm_with_affine=True, n_kv_heads=1, clip_qkv=1.0, mlp_hidden_size=88,
        scale_logits=True,
    ),
    # OLMo 2: RMS norms after the halves, QK-norm, grouped queries.
    "olmo2": dict(
        weight_tying=False, layer_norm_type="rms", layer_norm_with_affine=True, layer_norm_eps=1e-6, norm_after=True,
        attention_layer_norm=True, attention_layer_norm_with_affine=True, n_kv_heads=2, rope_theta=500000,
        init_fn="normal", init_std=0.1,
    ),
    # OLMo's other activations, with weights so large that both sides of 0 count.
    **{name: dict(d_model=16, n_layers=1, mlp_hidden_size=42, weight_tying=True, layer_norm_with_affine=False, activation_type=name, init_std=0.2,
                  init_fn="normal", layer_norm_type="rms") for name in ("gelu", "relu")},
}


def build(settings):
    values = {**COMMON, **settings}
    typed = dict(values)
    typed["activation_type"] = ActivationType(values["activation_type"])
    typed["layer_norm_type"] = LayerNormType(values["layer_norm_type"])
    typed["init_fn"] = InitFnType(values["init_fn"])
    torch.manual_seed(7)
    model = OLMo(ModelConfig(**typed, init_device="cpu", attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "ln_f" in name:  # ones and zeros would hide mistakes
                parameter.add_(0.3 * torch.randn_like(parameter))
    return values, model


def make(name, settings):
    values, model = build(settings)
    generator = torch.Generator().manual_seed(11)
    ids = torch.randint(0, values["vocab_size"], (BATCH, LENGTH), generator=generator)
    labels = torch.full_like(ids, -100)
    labels[:, :-1] = ids[:, 1:]
    labels[1, 3:6] = -100
    logits = model(ids).logits
    flat = logits.view(-1, logits.shape[-1])
    ce = F.cross_entropy(flat, labels.view(-1), ignore_index=-100, reduction="none")
    lse = flat.logsumexp(-1) * (labels.view(-1) != -100)
    (ce.sum() + Z_MULTIPLIER * (lse**2).sum()).div(ids.numel()).backward()
    tensors = {
        "ids": ids.numpy(), "labels": labels.numpy(), "logits": logits.detach().numpy(),
        "ce": ce.detach().view(BATCH, LENGTH).numpy(), "lse": lse.detach().view(BATCH, LENGTH).numpy(),
    }
    for key, parameter in model.named_parameters():
        tensors["weight." + key] = parameter.detach().numpy()
        tensors["grad." + key] = parameter.grad.numpy()
    metadata = {
        "config": json.dumps(values), "z_multiplier": str(Z_MULTIPLIER), "order": json.dumps([k for k, _ in model.named_parameters()]),
        "versions": json.dumps({"ai2-olmo": olmo.version.VERSION, "torch": torch.__version__, "numpy": np.__version__}),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, OUT / f"{name}.safetensors", metadata=metadata)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for key, value in MODELS.items():
        make(key, value)
