"""Makes tests/data/optim/optimizers.safetensors (a few steps of OLMo's own optimizers on random tensors) and
tests/data/optim/schedules.json (learning rates and clip limits of OLMo's schedulers, as hexadecimal floats).

Needs: pip install ai2-olmo==0.6.0 torch==2.11.0 numpy==2.4.6 safetensors
Run:   python3 tests/goldens/make_optim.py

Every step does what olmo/train.py does: clip with the limits that the step before set, then set learning rate and limits
from the scheduler, then step. Tensors: init/NAME, grad/STEP/NAME (before clipping; some elements are exactly 0), and for
each case CASE/{param,exp_avg,exp_avg_sq}/NAME after the last step, CASE/param_after_first/NAME. Metadata "description": JSON
with the scheduler and, per case, the settings and each step's learning rate, gradient norms, limits, moving averages.
"""

import json
import pathlib

import numpy as np
import torch
from olmo.config import OptimizerConfig, SchedulerConfig
from olmo.optim import AdamW, BoltOnWarmupScheduler, LionW, build_scheduler
from safetensors.torch import save_file

STEPS = 6
SHAPES = {
    "transformer.blocks.0.att_proj.weight": (24, 30),
    "transformer.blocks.0.attn_norm.weight": (24,),
    "transformer.blocks.0.ff_out.weight": (40, 17),
    "transformer.wte.weight": (50, 24),
}
NO_DECAY = {"transformer.blocks.0.attn_norm.weight", "transformer.wte.weight"}
SCHEDULER = dict(name="cosine_with_warmup", units="steps", t_warmup=3, alpha_f=0.1, grad_clip_warmup_steps=2,
                 grad_clip_warmup_factor=3.0)
CASES = {
    "adamw": dict(name="adamw", learning_rate=1e-2, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-8,
                  selective_updates=False, max_grad_norm=0.3, max_grad_norm_ratio=None),
    "adamw_selective": dict(name="adamw", learning_rate=1e-2, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-5,
                            selective_updates=True, max_grad_norm=0.3, max_grad_norm_ratio=None),
    "adamw_ratio": dict(name="adamw", learning_rate=1e-2, weight_decay=0.1, betas=(0.8, 0.99), eps=1e-5,
                        selective_updates=False, max_grad_norm=1.0, max_grad_norm_ratio=0.9),
    "lionw": dict(name="lionw", learning_rate=1e-3, weight_decay=0.1, betas=(0.9, 0.99), eps=1e-5,
                  selective_updates=False, max_grad_norm=0.3, max_grad_norm_ratio=None),
    "lionw_selective": dict(name="lionw", learning_rate=1e-3, weight_decay=0.1, betas=(0.9, 0.99), eps=1e-5,
                            selective_updates=True, max_grad_norm=None, max_grad_norm_ratio=None),
}


SCHEDULES = [
    dict(name="cosine_with_warmup", t_warmup=2000, alpha_f=0.1),
    dict(name="cosine_with_warmup", t_warmup=0, alpha_f=0.0, t_max=50000, warmup_min_lr=0.0),
    dict(name="linear_with_warmup", t_warmup=5000, alpha_f=0.1, grad_clip_warmup_steps=1000,
         grad_clip_warmup_factor=10.0),
    dict(name="linear_with_warmup", t_warmup=556000, alpha_f=0.001, t_max=557000),
    dict(name="inverse_sqrt_with_warmup", t_warmup=300),
    dict(name="max_scheduler", t_warmup=400, alpha_f=0.1, t_max=4000, grad_clip_warmup_steps=400,
         grad_clip_warmup_factor=5.0),
    dict(name="constant", t_warmup=1),
    dict(name="cosine_linear_envelope", t_warmup=100, alpha_f=0.1),
    dict(name="constant_with_warmup", t_warmup=77, warmup_min_lr=1e-6),
]


NEW_WARMUPS = [(SCHEDULES[0], 30000), (SCHEDULES[2], 900), (SCHEDULES[5], 1), (SCHEDULES[7], 0)]


def make_new_warmups():
    """Of trainings that take over a checkpoint after step `begin` without its moments, as scripts/train.py of OLMo does it."""
    cases = []
    for settings, begin in NEW_WARMUPS:
        peak, end = 3e-4, 60000
        warm = int(begin + settings["t_warmup"])
        scheduler = BoltOnWarmupScheduler.wrap(build_scheduler(None, SchedulerConfig(**settings)), begin, warm)
        steps = sorted({max(begin - 1, 0), begin, begin + 1, warm - 1, warm, warm + 1, 59999, 60000}
                       | {begin + (warm - begin) * k // 17 for k in range(17)})
        cases.append(dict(
            scheduler=settings, begin=begin, initial_lr=peak, max_steps=end, steps=steps,
            lr_hex=[float(scheduler.get_lr(peak, s, end)).hex() for s in steps],
            max_grad_norm=[scheduler.get_max_grad_norm(1.0, s, end) for s in steps]))
    return cases


def make_schedules():
    cases = make_new_warmups()
    for settings in SCHEDULES:
        scheduler = build_scheduler(None, SchedulerConfig(**settings))
        for peak, end in ((4e-4, 60000), (3e-4, 1234), (2.3e-5, 557001)):
            steps = sorted({0, 1, 2, 3, 76, 77, 78, 399, 400, 401, 999, 1000, 1001, 1233, 1234, 1235, 9999, 10000, 10001,
                            10499, 10500, 49999, 50000, 59999, 60000, 60001, 278501, 556000, 556001, 556999, 557000}
                           | {end * k // 31 for k in range(31)})
            cases.append(dict(
                scheduler=settings, initial_lr=peak, max_steps=end, steps=steps,
                lr_hex=[float(scheduler.get_lr(peak, s, end)).hex() for s in steps],
                max_grad_norm=[scheduler.get_max_grad_norm(1.0, s, end) for s in steps]))
    return dict(reference="ai2-olmo 0.6.0", cases=cases)


def make_inputs():
    rng = np.random.default_rng(2026)
    init = {n: torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for n, s in SHAPES.items()}
    grads = []
    for step in range(STEPS):
        scale = 0.01 * (1 + step % 3)
        drawn = {n: torch.from_numpy((scale * rng.standard_normal(s)).astype(np.float32)) for n, s in SHAPES.items()}
        for grad in drawn.values():
            grad[torch.from_numpy(rng.random(grad.shape) < 0.2)] = 0.0
        grads.append(drawn)
    return init, grads


def run(case, init, grads):
    params = {n: torch.nn.Parameter(t.clone()) for n, t in init.items()}
    groups = []
    for decays in (True, False):
        names = sorted(n for n in SHAPES if (n not in NO_DECAY) == decays)
        group = dict(params=[params[n] for n in names], param_names=names, sharded=False,
                     max_grad_norm=case["max_grad_norm"], max_grad_norm_ratio=case["max_grad_norm_ratio"])
        if not decays:
            group["weight_decay"] = 0.0
        groups.append(group)
    common = dict(lr=case["learning_rate"], betas=case["betas"], weight_decay=case["weight_decay"],
                  selective_updates=case["selective_updates"])
    optim = AdamW(groups, eps=case["eps"], **common) if case["name"] == "adamw" else LionW(groups, **common)
    scheduler = build_scheduler(None, SchedulerConfig(**SCHEDULER))
    tensors, steps = {}, []
    for step in range(1, STEPS + 1):
        for name, param in params.items():
            param.grad = grads[step - 1][name].clone()
        metrics = optim.clip_grads_and_collect_metrics(step, collect_param_metrics=True, device=torch.device("cpu"))
        for group in optim.param_groups:
            group["lr"] = scheduler.get_lr(case["learning_rate"], step, STEPS)
            group["max_grad_norm"] = scheduler.get_max_grad_norm(case["max_grad_norm"], step, STEPS)
            group["max_grad_norm_ratio"] = scheduler.get_max_grad_norm(case["max_grad_norm_ratio"], step, STEPS)
        optim.step()
        steps.append(dict(
            lr=optim.param_groups[0]["lr"],
            total_grad_norm=metrics["total_grad_norm"].item(),
            clipping_rate=metrics["clipping_rate"].item(),
            grad_norms={n: metrics[f"grad/{n}.norm"].item() for n in SHAPES},
            grad_norm_exp_avg={n: metrics[f"grad_norm_exp_avg/{n}"].item() for n in SHAPES
                               if f"grad_norm_exp_avg/{n}" in metrics},
            next_max_grad_norm=optim.param_groups[0]["max_grad_norm"],
            next_max_grad_norm_ratio=optim.param_groups[0]["max_grad_norm_ratio"]))
        if step == 1:
            tensors.update({f"param_after_first/{n}": p.detach().clone() for n, p in params.items()})
    for name, param in params.items():
        tensors[f"param/{name}"] = param.detach()
        for key in ("exp_avg", "exp_avg_sq"):
            if key in optim.state[param]:
                tensors[f"{key}/{name}"] = optim.state[param][key]
    return tensors, steps


def main():
    torch.set_num_threads(1)
    init, grads = make_inputs()
    out = {f"init/{n}": t for n, t in init.items()}
    for step, drawn in enumerate(grads, start=1):
        out.update({f"grad/{step}/{n}": t for n, t in drawn.items()})
    described = {}
    for label, case in CASES.items():
        tensors, steps = run(case, init, grads)
        out.update({f"{label}/{n}": t for n, t in tensors.items()})
        described[label] = dict(case, steps=steps)
    versions = f"ai2-olmo 0.6.0, torch {torch.__version__}, numpy {np.__version__}"
    metadata = dict(description=json.dumps(dict(scheduler=SCHEDULER, cases=described, versions=versions)))
    folder = pathlib.Path(__file__).resolve().parent.parent / "data" / "optim"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(out, folder / "optimizers.safetensors", metadata=metadata)
    (folder / "schedules.json").write_text(json.dumps(make_schedules(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
