"""Makes tests/data/ops/bf16.safetensors: OLMo's operations in bf16, each alone, with outputs and gradients.

Needs: torch==2.11.0 numpy safetensors. Run from the repository root: python3 tests/goldens/make_bf16_ops.py
`in.*` are inputs, which are kept where the file exists (so that figures stay comparable) and drawn otherwise. `out.*` is what
the definition gives: operands in bf16, sums in fp32, one rounding where an operation of OLMo under torch's autocast stores
into bf16. Attention rounds the exponentials, multiplies them with v, and divides by the row's sum afterwards. The metadata's
`figures` says of each output how far the definition is from itself with other orders of its fp32 sums, doubled (in equal
elements, absolutely, in relative rms), and torch_error: the relative rms error to fp64 of torch's own operation in bf16.
`--check` compares the outputs with the file instead of writing it.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file

OUT = Path(__file__).resolve().parent.parent / "data" / "ops" / "bf16.safetensors"
BATCH, HEADS, LENGTH, VOCABULARY, EMBEDDED = 2, 3, 80, 384, 40
Z_MULTIPLIER, CLIP, EPS, THETA = 1e-4, 1.25, 1e-5, 10000.0
BF16, F32, F64 = torch.bfloat16, torch.float32, torch.float64


def draw_inputs():
    generator = torch.Generator().manual_seed(21)
    rows = BATCH * LENGTH

    def normal(*shape, scale=1.0, dtype=BF16):
        return (scale * torch.randn(*shape, generator=generator)).to(dtype)

    inputs = {
        "linear.x": normal(rows, 96), "linear.w": normal(112, 96, scale=0.3), "linear.dy": normal(rows, 112, scale=1e-3),
        "rope.t": normal(BATCH, HEADS, LENGTH, 16), "rope.dy": normal(BATCH, HEADS, LENGTH, 16),
        "swiglu.t": normal(rows, 144, scale=2.0), "swiglu.dy": normal(rows, 72),
        "clip.t": normal(rows, 48), "clip.dy": normal(rows, 48),
        "norm_bf16.x": normal(rows, 72), "norm_bf16.dy": normal(rows, 72),
        "norm_fp32.x": normal(rows, 72, dtype=F32), "norm_fp32.dy": normal(rows, 72),
        "embedding.ids": torch.randint(0, EMBEDDED, (BATCH, LENGTH), generator=generator),
        "embedding.dy": normal(BATCH, LENGTH, 24),
        "loss.ids": torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=generator),
        "loss.logits": normal(BATCH, LENGTH, VOCABULARY, scale=2.0),
        "round.fp32_bits": torch.randint(-(2**31), 2**31, (110,), generator=generator).to(torch.int32),
    }
    for size in (16, 20):
        for name, scale in (("q", 1.0), ("k", 1.0), ("v", 1.0), ("do", 1e-3)):
            inputs[f"attention{size}.{name}"] = normal(BATCH, HEADS, LENGTH, size, scale=scale)
    return inputs


def read_file():
    with safe_open(OUT, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def rounded(x):
    return x.to(BF16).to(F32)


class Sums:
    """How products are summed. exact: one fp32 fma after the other over the summed index, upwards (a product of two bf16
    numbers is exact in fp32, so that an addition of it is the fma). Otherwise in fp64, or with small errors at random."""

    def __init__(self, kind, seed=0):
        self.kind, self.generator = kind, torch.Generator().manual_seed(seed)

    def product(self, a, b):
        """a (..., m, k) times b (..., k, n), fp32."""
        if self.kind == "exact":
            a, b = a.numpy(), b.numpy()
            sums = np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), np.float32)
            for p in range(a.shape[-1]):
                sums = sums + a[..., :, p, None] * b[..., None, p, :]
            return torch.from_numpy(sums)
        result = (a.to(F64) @ b.to(F64)).to(F32)
        if self.kind == "jitter":
            result = result * (1 + 2.0**-25 * torch.randn(result.shape, generator=self.generator))
        return result


def linear(inputs, sums):
    x, w, dy = (inputs[f"linear.{n}"].to(F32) for n in ("x", "w", "dy"))
    return {"linear.y": sums.product(x, w.T).to(BF16), "linear.d_x": sums.product(dy, w).to(BF16),
            "linear.d_w": sums.product(dy.T, x).to(BF16)}


def attention(inputs, sums, size):
    name = f"attention{size}"
    q, k, v, do = (inputs[f"{name}.{n}"].to(F32) for n in ("q", "k", "v", "do"))
    scale = size**-0.5
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    scores = (sums.product(q, k.mT) * scale).masked_fill(hidden, -torch.inf)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    total = exponentials.sum(-1, keepdim=True)
    out = (sums.product(rounded(exponentials), v) / total).to(BF16)
    p = exponentials / total
    delta = (do * out.to(F32)).sum(-1, keepdim=True)
    ds = rounded(p * (sums.product(do, v.mT) - delta))
    return {f"{name}.o": out, f"{name}.d_q": (sums.product(ds, k) * scale).to(BF16),
            f"{name}.d_k": (sums.product(ds.mT, q) * scale).to(BF16),
            f"{name}.d_v": sums.product(rounded(p).mT, do).to(BF16)}


def rotate(x, sign, dtype=F32):
    half = x.shape[-1] // 2
    frequencies = 1.0 / (THETA ** (torch.arange(0, 2 * half, 2, dtype=F32) / (2 * half)))
    angles = torch.arange(LENGTH, dtype=F32)[:, None] * frequencies
    cosines, sines = (torch.cat((f(angles), f(angles)), -1).to(dtype) for f in (torch.cos, torch.sin))
    a, b = x[..., :half], x[..., half:]
    return x * cosines + sign * torch.cat((-b, a), -1) * sines


def pointwise(inputs):
    t, dy = inputs["swiglu.t"].to(F32), inputs["swiglu.dy"].to(F32)
    up, gate = t.chunk(2, -1)
    s = torch.sigmoid(gate)
    d_silu = rounded(dy * up)
    clip, d_clip = inputs["clip.t"], inputs["clip.dy"]
    return {
        "rope.y": rotate(inputs["rope.t"].to(F32), 1).to(BF16), "rope.d_t": rotate(inputs["rope.dy"].to(F32), -1).to(BF16),
        "swiglu.y": (rounded(gate * s) * up).to(BF16),
        "swiglu.d_t": torch.cat((dy * rounded(gate * s), d_silu * (s * (1 + gate * (1 - s)))), -1).to(BF16),
        "clip.y": clip.clamp(-CLIP, CLIP), "clip.d_t": torch.where(clip.abs() <= CLIP, d_clip, torch.zeros_like(d_clip)),
        "round.bf16_bits": inputs["round.fp32_bits"].view(F32).to(BF16).view(torch.int16),
    }


def norm(inputs, name):
    x, dy = inputs[f"{name}.x"].to(F32).clone().requires_grad_(), inputs[f"{name}.dy"].to(F32)
    y = F.layer_norm(x, (x.shape[-1],), eps=EPS)
    y.backward(dy)
    return {f"{name}.y": y.detach().to(BF16), f"{name}.d_x": x.grad.to(inputs[f"{name}.x"].dtype)}


def embedding(inputs):
    ids, dy = inputs["embedding.ids"].flatten(), inputs["embedding.dy"].to(F32).flatten(0, 1)
    gradient = torch.zeros(EMBEDDED, dy.shape[-1])
    for token, row in zip(ids.tolist(), dy):
        gradient[token] = gradient[token] + row
    return {"embedding_fp32.d_w": gradient, "embedding_bf16.d_w": gradient.to(BF16)}


def loss_of(logits, ids, count):
    used = logits[:, :-1].flatten(0, 1)
    ce = F.cross_entropy(used, ids[:, 1:].flatten(), reduction="none")
    z = Z_MULTIPLIER * used.logsumexp(-1).square()
    return ce, z, ce.sum() / count, z.sum() / count


def loss(inputs, dtype=F32):
    logits = inputs["loss.logits"].to(dtype).requires_grad_()
    ce, z, ce_sum, z_sum = loss_of(logits, inputs["loss.ids"], BATCH * LENGTH)
    (ce_sum + z_sum).backward()
    gradient = logits.grad if dtype == F64 else logits.grad.to(BF16)
    return {"loss.ce_per_token": ce.detach(), "loss.z_per_token": z.detach(), "loss.ce_sum_over_n": ce_sum.detach(),
            "loss.z_sum_over_n": z_sum.detach(), "loss.d_logits_fused": gradient}


def definition(inputs, sums):
    return {**linear(inputs, sums), **attention(inputs, sums, 16), **attention(inputs, sums, 20), **pointwise(inputs),
            **norm(inputs, "norm_bf16"), **norm(inputs, "norm_fp32"), **embedding(inputs), **loss(inputs)}


def by_autograd(inputs, dtype):
    """The operations of torch, with autograd, in the inputs' own types (dtype None) or in `dtype`."""
    def of(name, gradient=True):
        t = inputs[name] if dtype is None else inputs[name].to(dtype)
        return t.clone().requires_grad_() if gradient else t

    results = {}

    def record(output, name, leaves, dy):
        output.backward(of(dy, gradient=False).to(output.dtype))
        results[name] = output.detach()
        results.update({key: leaf.grad for key, leaf in leaves.items()})

    x, w = of("linear.x"), of("linear.w")
    record(F.linear(x, w), "linear.y", {"linear.d_x": x, "linear.d_w": w}, "linear.dy")
    for size in (16, 20):
        a = f"attention{size}"
        q, k, v = of(f"{a}.q"), of(f"{a}.k"), of(f"{a}.v")
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        record(out, f"{a}.o", {f"{a}.d_q": q, f"{a}.d_k": k, f"{a}.d_v": v}, f"{a}.do")
    t = of("rope.t")
    turned = rotate(t.to(dtype or F32), 1, dtype or F32).to(t.dtype)
    record(turned, "rope.y", {"rope.d_t": t}, "rope.dy")
    t = of("swiglu.t")
    up, gate = t.chunk(2, -1)
    record(F.silu(gate) * up, "swiglu.y", {"swiglu.d_t": t}, "swiglu.dy")
    t = of("clip.t")
    record(t.clamp(-CLIP, CLIP), "clip.y", {"clip.d_t": t}, "clip.dy")
    for name in ("norm_bf16", "norm_fp32"):
        x = of(f"{name}.x")
        y = F.layer_norm(x.to(dtype or F32), (x.shape[-1],), eps=EPS)
        record(y if dtype else y.to(BF16), f"{name}.y", {f"{name}.d_x": x}, f"{name}.dy")
    dy = of("embedding.dy", gradient=False).flatten(0, 1)
    gradient = torch.zeros(EMBEDDED, dy.shape[-1], dtype=dtype or F32)
    gradient.index_add_(0, inputs["embedding.ids"].flatten(), dy.to(gradient.dtype))
    results["embedding_fp32.d_w"] = gradient
    results["embedding_bf16.d_w"] = gradient if dtype else gradient.to(BF16)
    results.update(loss(inputs, dtype or F32))
    return results


def distance(a, b):
    difference = (a.to(F64) - b.to(F64)).abs()
    size = b.to(F64).square().sum()
    relative = (difference.square().sum() / size).sqrt().item() if difference.any() else 0.0
    return {"unequal": 1 - (a.to(BF16) == b.to(BF16)).to(F64).mean().item(), "max_abs": difference.max().item(), "rms_rel": relative}


def figures_of(inputs, outputs):
    """Twice the largest distance of the variants, and at least two elements in a thousand, a rounding of the largest, and a small rms."""
    variants = [definition(inputs, Sums("fp64"))] + [definition(inputs, Sums("jitter", seed)) for seed in (1, 2, 3)]
    exact, torch_itself = by_autograd(inputs, F64), by_autograd(inputs, None)
    figures = {}
    for name, output in outputs.items():
        if name == "round.bf16_bits":
            continue
        apart = [distance(variant[name], output) for variant in variants]
        fp32 = output.dtype == F32
        least = 5e-7 if fp32 else 2e-4
        ulp = output.abs().max().item() * (2.0**-19 if fp32 else 2.0**-7)
        figures[name] = {
            "equal_at_least": 0.0 if fp32 else 1 - max(2e-3, 2 * max(d["unequal"] for d in apart)),
            "max_abs": max(ulp, 2 * max(d["max_abs"] for d in apart)),
            "rms_rel": max(least, 2 * max(d["rms_rel"] for d in apart)),
            "torch_error": distance(torch_itself[name], exact[name])["rms_rel"],
        }
    return figures


def check(outputs, stored):
    for name, output in outputs.items():
        apart = distance(output, stored[f"out.{name}"])
        print(f"{name:24} equal {1 - apart['unequal']:.4f}  max_abs {apart['max_abs']:.2e}  rms_rel {apart['rms_rel']:.2e}")


def main():
    stored = read_file()[0] if OUT.exists() else {}
    inputs = {name[3:]: t for name, t in stored.items() if name.startswith("in.")} or draw_inputs()
    outputs = definition(inputs, Sums("exact"))
    if "--check" in sys.argv:
        check(outputs, stored)
        return
    tensors = {f"in.{n}": t for n, t in inputs.items()} | {f"out.{n}": t for n, t in outputs.items()}
    metadata = {"figures": json.dumps(figures_of(inputs, outputs)),
                "versions": json.dumps({"torch": torch.__version__, "numpy": np.__version__})}
    OUT.parent.mkdir(exist_ok=True)
    save_file({name: t.contiguous() for name, t in tensors.items()}, OUT, metadata=metadata)


if __name__ == "__main__":
    main()
