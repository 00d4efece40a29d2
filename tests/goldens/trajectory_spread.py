"""How far OLMo's own trainer ends from itself when its initial weights differ by half an ulp.

Needs: as make_trajectory.py
Run:   python3 tests/goldens/trajectory_spread.py GOLDEN/train/NAME TOKENS.npy

Repeats the trajectory in fp32 with every initial weight multiplied by 1 +- 2^-24, with 20 seeds, and prints the largest
distances from the recorded one. tests/train/trajectory_test.cpp takes them where they are larger than the distance of one
fp32 run from float64. A trajectory can be so sensitive where a definition has a step, as the gradient of clip_qkv.
"""

import json
import pathlib
import sys
import tempfile

import make_trajectory
import torch
from olmo.config import (DataConfig, ModelConfig, OptimizerConfig, OptimizerType, SchedulerConfig, SchedulerType,
                         SchedulerUnits, TrainConfig)
from safetensors.torch import load_file

SEEDS = 20


def present(settings, **enums):
    found = {name: value for name, value in settings.items() if value is not None}
    return {**found, **{name: enum(found[name]) for name, enum in enums.items()}}


def config_of(recorded, tokens, folder):
    cfg = TrainConfig(
        run_name="spread", seed=6198, model=ModelConfig(**present(recorded["model_config"])),
        optimizer=OptimizerConfig(**present(recorded["optimizer"], name=OptimizerType)),
        scheduler=SchedulerConfig(**present(recorded["scheduler"], name=SchedulerType, units=SchedulerUnits)),
        max_duration=recorded["max_duration"], precision="fp32", save_folder=folder, save_overwrite=True,
        global_train_batch_size=recorded["global_batch"], device_train_microbatch_size=recorded["microbatch"],
        max_grad_norm=recorded["max_grad_norm"], max_grad_norm_ratio=recorded["max_grad_norm_ratio"],
        softmax_auxiliary_loss=recorded["softmax_auxiliary_loss"],
        data=DataConfig(paths=[str(tokens)], memmap_dtype="uint16", drop_last=recorded["drop_last"], num_workers=0,
                        seed=recorded["data_seed"]))
    return make_trajectory.filled_in(cfg)


def perturbed(weights, seed):
    generator = torch.Generator().manual_seed(seed)
    return {name: weight * (1 + (torch.randint(0, 2, weight.shape, generator=generator) * 2 - 1) * 2.0**-24)
            for name, weight in weights.items()}


def main():
    torch.set_num_threads(1)
    folder, tokens = pathlib.Path(sys.argv[1]), sys.argv[2]
    recorded = json.loads((folder / "trajectory.json").read_text())
    steps = [dict(step, total_grad_norm=step["total_grad_norm_before_clip"]) for step in recorded["steps"]]
    reference = steps, {name: tensor.double() for name, tensor in load_file(folder / "final.safetensors").items()}
    weights = load_file(folder / "init.safetensors")
    largest = {}
    for seed in range(1, SEEDS + 1):
        with tempfile.TemporaryDirectory() as scratch:
            trainer = make_trajectory.trainer_of(config_of(recorded, tokens, scratch), perturbed(weights, seed))
            apart = make_trajectory.divergence(make_trajectory.train(trainer, len(steps)), reference)
        print(seed, apart, flush=True)
        largest = {name: max(value, largest.get(name, 0)) for name, value in apart.items()}
    print("largest", largest)


if __name__ == "__main__":
    main()
