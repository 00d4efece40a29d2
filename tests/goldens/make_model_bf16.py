"""Makes tests/data/model/bf16_*.safetensors: the small models of make_model.py under amp_bf16, by the reference implementation.

Needs: ai2-olmo==0.6.0 torch==2.11.0 numpy safetensors. Run from the repository root: python3 tests/goldens/make_model_bf16.py
`mixed`: parameters cast to bf16, as FSDP's `mixed` gives them to the model; `autocast`: parameters in fp32. Both run under torch's
autocast on a CPU, with layer_norm in fp32, as a GPU has it (its kernel for the CPU adds gradients in bf16), and with attention rounded as src/ops/attention.h
defines it, since torch's kernels for the CPU round in other places. All else is ai2-olmo. The weights are those of the
model's file without bf16. Each file holds `ids` and `labels`, `hidden` (the residual stream after block 0), `logits`, `ce` and `lse` per token and
`grad.<name>` of block 0, the last norm and the embedding, for ce_sum/(B*T) + z_multiplier*sum(lse^2)/(B*T) with the two losses'
gradients added in fp32; in bf16 where every value is one. Metadata: `config`, `variant`, z_multiplier, versions, and
`tolerance`: twice the distance to the same model with the sums of its products in fp64, so with the same roundings and another
order of additions, by name: relative rms, and for `hidden` the least share of elements that are equal in bf16.
"""

import json
from pathlib import Path

import numpy as np
import olmo.version
import torch
import torch.nn.functional as F
from olmo.config import ActivationType, InitFnType, LayerNormType, ModelConfig
from olmo.model import OLMo, OLMoBlock
from safetensors import safe_open
from safetensors.torch import save_file

DATA = Path(__file__).resolve().parent.parent / "data" / "model"
MODELS = {
    "tied": ("tied", {}),
    "affine": ("untied_clip", {"scale_logits": False}),
    "low_precision": ("untied_clip", {"scale_logits": False, "layer_norm_type": "low_precision"}),
    "olmo2": ("olmo2", {}),
    "low_precision_after": ("olmo2", {"layer_norm_type": "low_precision"}),
    "plain_rms": ("olmo2", {"layer_norm_with_affine": False, "attention_layer_norm_with_affine": False}),
    "gelu": ("gelu", {}),
    "relu": ("relu", {}),
}
SEEDS = {"low_precision_after": 3}  # of the tokens; all others have 2
# A stream in bf16 makes no difference between these and the others.
AUTOCAST_ONLY = ("low_precision", "low_precision_after", "plain_rms")


def layer_norm_in_fp32(x, shape, weight=None, bias=None, eps=1e-5, original=F.layer_norm):
    """fp32 inside; returned in fp32 under autocast and rounded once outside of it, where OLMo's `low_precision` calls it."""
    with torch.autocast("cpu", enabled=False):
        up = [None if t is None else t.float() for t in (weight, bias)]
        y = original(x.float(), shape, *up, eps)
    return y if torch.is_autocast_enabled("cpu") else y.to(x.dtype)


def exactly(x):
    return x


class Attention(torch.autograd.Function):
    """Causal, of bf16 q, k, v: exponentials are rounded before v and divided after it; sums are in `dtype`.

    The query heads that share a head of k and v add to its gradient in one sum, which is rounded once. `noisy` is applied to
    every value before it is rounded. `starts`, of each document of all sequences, keep attention to documents.
    """

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(ctx, q, k, v, dtype, noisy=exactly, starts=None):
        scale = float(np.float32(q.shape[-1] ** -0.5))
        group = q.shape[1] // k.shape[1]
        q_, k_, v_ = q.to(dtype), *(t.to(dtype).repeat_interleave(group, dim=1) for t in (k, v))
        seen = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
        if starts is not None:
            document = torch.searchsorted(starts, torch.arange(q.shape[0] * q.shape[2]), right=True).view(-1, 1, q.shape[2])
            seen = seen & (document[..., None] == document[..., None, :])
        scores = (q_ @ k_.transpose(-1, -2) * scale).float().masked_fill(~seen, -torch.inf)
        top = scores.amax(-1, keepdim=True)
        exponentials = noisy((scores - top).exp())
        total = exponentials.sum(-1, keepdim=True)
        out = noisy(exponentials.bfloat16().to(dtype) @ v_ / total).bfloat16()
        ctx.save_for_backward(q, k, v, out, (scores - (top + total.log())).exp())
        ctx.dtype, ctx.scale, ctx.group, ctx.noisy = dtype, scale, group, noisy
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, p = ctx.saved_tensors
        q, k, v, out, dout = (t.to(ctx.dtype) for t in (q, k, v, out, dout))
        of_group = lambda t: t.unflatten(1, (-1, ctx.group)).sum(2)
        k, v = (t.repeat_interleave(ctx.group, dim=1) for t in (k, v))
        dv = p.bfloat16().to(ctx.dtype).transpose(-1, -2) @ dout
        dp = (dout @ v.transpose(-1, -2) - (dout * out).sum(-1, keepdim=True)).float()
        ds = ctx.noisy(p * dp).bfloat16().to(ctx.dtype)
        dq, dk = ds @ k * ctx.scale, of_group(ds.transpose(-1, -2) @ q) * ctx.scale
        dq, dk, dv = (ctx.noisy(t).bfloat16() for t in (dq, dk, of_group(dv)))
        return dq, dk, dv, None, None, None


class Linear64(torch.autograd.Function):
    """The product of bf16 matrices, each sum in fp64 and rounded once, after `noisy` was applied to it."""

    @staticmethod
    def forward(ctx, x, w, noisy=exactly):
        ctx.save_for_backward(x, w)
        ctx.noisy = noisy
        return noisy(x.double() @ w.double().t()).bfloat16()

    @staticmethod
    def backward(ctx, dy):
        x, w = (t.double() for t in ctx.saved_tensors)
        dy = dy.double()
        return ctx.noisy(dy @ w).bfloat16(), ctx.noisy(dy.flatten(0, -2).t() @ x.flatten(0, -2)).bfloat16(), None


def sums_in(dtype, linear=F.linear, noisy=exactly):
    """Attention and linear layers whose sums are in fp32 (torch's own products) or in fp64."""
    OLMoBlock._scaled_dot_product_attention = lambda self, q, k, v, cu_doc_lens=None, **_: Attention.apply(
        q, k, v, dtype, noisy, cu_doc_lens)
    wide = lambda x, w, bias=None: Linear64.apply(x.bfloat16(), w.bfloat16(), noisy)
    F.linear = linear if dtype == torch.float32 else wide


def build(settings, weights, variant):
    typed = dict(settings)
    typed["activation_type"] = ActivationType(settings["activation_type"])
    typed["layer_norm_type"] = LayerNormType(settings["layer_norm_type"])
    typed["init_fn"] = InitFnType(settings["init_fn"])
    model = OLMo(ModelConfig(**typed, init_device="cpu", attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0))
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model.bfloat16() if variant == "mixed" else model


def run(model, ids, labels, z_multiplier, dtype):
    hidden = []
    model.transformer.blocks[0].register_forward_hook(lambda module, args, output: hidden.append(output[0].detach()))
    sums_in(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids).logits
    flat = logits.float().view(-1, logits.shape[-1])
    ce = F.cross_entropy(flat, labels.view(-1), ignore_index=-100, reduction="none")
    lse = flat.logsumexp(-1) * (labels.view(-1) != -100)
    (ce.sum() + z_multiplier * (lse**2).sum()).div(ids.numel()).backward()
    found = {"hidden": hidden[0], "logits": logits.detach(), "ce": ce.detach(), "lse": lse.detach()}
    for name, parameter in model.named_parameters():
        if ".blocks.0." in name or "wte" in name or "ln_f" in name:
            found["grad." + name] = parameter.grad.detach().clone()
    return found


def distance(a, b):
    a, b = a.double(), b.double()
    return {"rms_rel": float((a - b).norm() / b.norm()), "equal": float((a.bfloat16() == b.bfloat16()).double().mean())}


def tolerances(found, other):
    distances = {name: distance(other[name], found[name]) for name in found}
    gradients = max(d["rms_rel"] for name, d in distances.items() if name.startswith("grad."))
    tolerance = {name: 2 * distances[name]["rms_rel"] for name in ("hidden", "logits", "ce", "lse")}
    return {**tolerance, "grad": 2 * gradients, "hidden_equal": 1 - 2 * (1 - distances["hidden"]["equal"])}


def tokens(vocabulary, seed):
    """Few, and such that another order of the sums changes next to no bit of the results: one rounding to the other side changes
    the gradients of all layers before it by as much as a rounding that is left out."""
    ids = torch.randint(0, vocabulary, (2, 11), generator=torch.Generator().manual_seed(seed))
    labels = torch.full_like(ids, -100)
    labels[:, :-1] = ids[:, 1:]
    labels[1, 3:6] = -100
    return ids, labels


def make(name, variant):
    source, changes = MODELS[name]
    with safe_open(DATA / f"{source}.safetensors", framework="pt") as file:
        settings = {**json.loads(file.metadata()["config"]), **changes}
        z_multiplier = float(file.metadata()["z_multiplier"])
        weights = {key[7:]: file.get_tensor(key) for key in file.keys() if key.startswith("weight.")}
    ids, labels = tokens(settings["vocab_size"], SEEDS.get(name, 2))
    found = run(build(settings, weights, variant), ids, labels, z_multiplier, torch.float32)
    other = run(build(settings, weights, variant), ids, labels, z_multiplier, torch.float64)
    metadata = {
        "config": json.dumps(settings), "source": source, "variant": variant, "z_multiplier": str(z_multiplier),
        "tolerance": json.dumps(tolerances(found, other)),
        "versions": json.dumps({"ai2-olmo": olmo.version.VERSION, "torch": torch.__version__, "numpy": np.__version__}),
    }
    exact = {key: t.bfloat16() if torch.equal(t.bfloat16().float(), t.float()) else t.float() for key, t in found.items()}
    exact.update(ids=ids, labels=labels)
    save_file({key: t.contiguous() for key, t in exact.items()}, DATA / f"bf16_{name}_{variant}.safetensors", metadata=metadata)
    print(name, variant, metadata["tolerance"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    F.layer_norm = layer_norm_in_fp32
    for name in MODELS:
        for variant in ("mixed", "autocast"):
            if variant == "autocast" or name not in AUTOCAST_ONLY:
                make(name, variant)
