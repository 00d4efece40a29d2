"""Makes tests/data/train/hf/: tiny models as other software saves them, with the logits that it computes from them.

Needs: transformers==5.17.0 ai2-olmo==0.6.0 torch==2.11.0 safetensors numpy. Run from the repository root:
python3 tests/goldens/make_hf.py

  olmo2/           Olmo2ForCausalLM with grouped queries, saved by transformers in shards
  olmo3/           Olmo3ForCausalLM, a layer of each kind of attention, the full one with YaRN
  olmo1/           OlmoForCausalLM, untied, with clip_qkv
  olmo1_layout/    the same weights as OLMo's own config.yaml and model.safetensors
  olmo1_hf_olmo/   the same weights as the package hf_olmo saves them
  olmo1_tied/      OlmoForCausalLM, tied, in bf16
  expected.safetensors, expected.json   ids, logits (fp32; olmo3_long: log-likelihoods of the next tokens; olmo3_grad.NAME: gradients of
                                        their mean, of the parameter NAME) and weights_digest (models/read_weights.h) of each
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import torch
import yaml
from olmo.config import ActivationType, LayerNormType, ModelConfig
from olmo.model import OLMo
from olmo.safetensors_util import state_dict_to_safetensors_file
from safetensors.torch import save_file
from transformers import Olmo2Config, Olmo2ForCausalLM, Olmo3Config, Olmo3ForCausalLM, OlmoConfig, OlmoForCausalLM

OUT = Path(__file__).resolve().parent.parent / "data" / "train" / "hf"
LONG = torch.arange(90) * 11 % 60  # beyond olmo3's window of 13
IDS = torch.arange(2 * 13).reshape(2, 13) * 7 % 60


def digest(state):
    """Of a state_dict under OLMo's names."""
    whole = hashlib.sha256()
    for name in sorted(state):
        values = state[name].float().contiguous().numpy()
        shape = ",".join(str(size) for size in values.shape)
        whole.update(name.encode() + b"\0" + shape.encode() + b"\0" + hashlib.sha256(values.tobytes()).digest())
    return whole.hexdigest()


def olmo_names(state, layers, norms, tied):
    """transformers' state_dict under OLMo's names."""
    ours = {"transformer.wte.weight": state["model.embed_tokens.weight"]}
    if norms:
        ours["transformer.ln_f.weight"] = state["model.norm.weight"]
    if not tied:
        ours["transformer.ff_out.weight"] = state["lm_head.weight"]
    for i in range(layers):
        a, b = f"model.layers.{i}.", f"transformer.blocks.{i}."
        ours[b + "att_proj.weight"] = torch.cat([state[a + f"self_attn.{x}_proj.weight"] for x in "qkv"])
        ours[b + "ff_proj.weight"] = torch.cat([state[a + f"mlp.{x}_proj.weight"] for x in ("up", "gate")])
        ours[b + "attn_out.weight"] = state[a + "self_attn.o_proj.weight"]
        ours[b + "ff_out.weight"] = state[a + "mlp.down_proj.weight"]
        if norms:
            ours[b + "q_norm.weight"] = state[a + "self_attn.q_norm.weight"]
            ours[b + "k_norm.weight"] = state[a + "self_attn.k_norm.weight"]
            ours[b + "attn_norm.weight"] = state[a + "post_attention_layernorm.weight"]
            ours[b + "ff_norm.weight"] = state[a + "post_feedforward_layernorm.weight"]
    return ours


def randomize(model):
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.3 * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1.0 + noise if "norm" in name else noise)


COMMON = dict(
    vocab_size=64, hidden_size=16, intermediate_size=24, num_attention_heads=4, max_position_embeddings=32,
    eos_token_id=59, pad_token_id=1,
)


def make_olmo2():
    config = Olmo2Config(**COMMON, num_hidden_layers=2, num_key_value_heads=2, rms_norm_eps=1e-6,
                         rope_parameters={"rope_type": "default", "rope_theta": 500000.0})
    model = Olmo2ForCausalLM(config).eval()
    randomize(model)
    model.save_pretrained(OUT / "olmo2", max_shard_size="12KB")
    return model(IDS).logits, digest(olmo_names(model.state_dict(), 2, norms=True, tied=False))


def make_olmo3():
    full = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 8, "beta_fast": 4.0,
            "beta_slow": 1.0, "attention_factor": 1.2}
    config = Olmo3Config(**COMMON, num_hidden_layers=2, num_key_value_heads=2, rms_norm_eps=1e-6, sliding_window=13,
                         layer_types=["sliding_attention", "full_attention"],
                         rope_parameters={"full_attention": full,
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})
    model = Olmo3ForCausalLM(config).eval()
    randomize(model)
    model.save_pretrained(OUT / "olmo3")
    return model(IDS).logits, digest(olmo_names(model.state_dict(), 2, norms=True, tied=False))


def make_olmo1():
    config = OlmoConfig(**COMMON, num_hidden_layers=1, clip_qkv=0.5)
    model = OlmoForCausalLM(config).eval()
    randomize(model)
    model.save_pretrained(OUT / "olmo1")
    ours = olmo_names(model.state_dict(), 1, norms=False, tied=False)

    settings = dict(
        d_model=16, n_heads=4, n_layers=1, mlp_hidden_size=48, activation_type="swiglu", rope=True, include_bias=False,
        layer_norm_type="default", layer_norm_with_affine=False, clip_qkv=0.5, weight_tying=False, vocab_size=60,
        embedding_size=64, max_sequence_length=32, eos_token_id=59, pad_token_id=1, attention_dropout=0.0,
        residual_dropout=0.0, embedding_dropout=0.0,
    )
    typed = ModelConfig(**{**settings, "activation_type": ActivationType.swiglu, "layer_norm_type": LayerNormType.default},
                        init_device="cpu")
    reference = OLMo(typed).eval()
    reference.load_state_dict(ours)
    logits = model(IDS).logits
    assert (reference(IDS).logits - logits).abs().max() < 1e-5

    for name in ("olmo1_layout", "olmo1_hf_olmo"):
        (OUT / name).mkdir()
    (OUT / "olmo1_layout/config.yaml").write_text(
        yaml.safe_dump({"run_name": "tiny", "model": settings, "tokenizer": {"identifier": "no/such-tokenizer"}}))
    state_dict_to_safetensors_file(ours, OUT / "olmo1_layout/model.safetensors")
    keys = {k: v for k, v in typed.asdict().items()}
    keys |= {"architectures": ["OLMoForCausalLM"], "model_type": "hf_olmo", "transformers_version": "4.40.0", "use_cache": True}
    (OUT / "olmo1_hf_olmo/config.json").write_text(json.dumps(keys, indent=2, default=str) + "\n")
    save_file({"model." + k: v for k, v in ours.items()}, OUT / "olmo1_hf_olmo/model.safetensors", metadata={"format": "pt"})
    return logits, digest(ours)


def make_tied():
    config = OlmoConfig(**COMMON, num_hidden_layers=1, tie_word_embeddings=True)
    model = OlmoForCausalLM(config).eval()
    randomize(model)
    model.to(torch.bfloat16).save_pretrained(OUT / "olmo1_tied")
    model = OlmoForCausalLM.from_pretrained(OUT / "olmo1_tied", dtype=torch.float32)  # the cast spoils the rotary angles
    return model(IDS).logits, digest(olmo_names(model.state_dict(), 1, norms=False, tied=True))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for folder in ("olmo1", "olmo1_hf_olmo", "olmo1_layout", "olmo1_tied", "olmo2", "olmo3"):
        shutil.rmtree(OUT / folder, ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    tensors, digests = {"ids": IDS}, {}
    for name, make in {"olmo2": make_olmo2, "olmo3": make_olmo3, "olmo1": make_olmo1, "olmo1_tied": make_tied}.items():
        logits, digests[name] = make()
        tensors[name] = logits.detach().contiguous()
    tensors["olmo3_long_ids"] = LONG
    olmo3 = Olmo3ForCausalLM.from_pretrained(OUT / "olmo3")
    olmo3.model.embed_tokens.padding_idx = None  # the gradient of the pad token's row, too
    likelihoods = olmo3(LONG[None]).logits[0].log_softmax(-1)[:-1].gather(1, LONG[1:, None])[:, 0]
    tensors["olmo3_long"] = likelihoods.detach().contiguous()
    (-likelihoods.mean()).backward()
    gradients = {name: parameter.grad for name, parameter in olmo3.named_parameters()}
    for name, gradient in olmo_names(gradients, 2, norms=True, tied=False).items():
        tensors["olmo3_grad." + name] = gradient.contiguous()
    save_file(tensors, OUT / "expected.safetensors")
    (OUT / "expected.json").write_text(json.dumps(digests, indent=2) + "\n")
    for file in OUT.rglob("generation_config.json"):
        file.unlink()
