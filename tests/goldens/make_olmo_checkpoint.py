"""Makes tests/data/train/olmo_checkpoint: an unsharded checkpoint of OLMo's own trainer, and the steps that follow it there.

Needs: as make_trajectory.py
Run:   python3 tests/goldens/make_olmo_checkpoint.py

config.yaml, model.safetensors and optim.safetensors are written by OLMo's functions after SAVED steps, with the parameters' names
that FSDP gives the optimizer's state; train.pt is what torch.save makes of what OLMo's Trainer.trainer_state_dict() holds, with the
state of the CPU's random generator in place of a GPU's. after.json has the steps up to MORE of the trainer that restored them, as trajectories have.
The tokens are make_trajectory's token_ids(). pickled/ holds the same tensors as model.pt and optim.pt; by_number/ the optimizer's
state by numbers instead of names, as DDP gives it, whose names begin with `module.`.
"""

import json
import random
import tempfile

import numpy as np
import torch
from make_trajectory import LENGTH, MODEL, OUT, token_ids, train, trainer_of
from olmo.config import (DataConfig, ModelConfig, OptimizerConfig, OptimizerType, SchedulerConfig, SchedulerType,
                         TrainConfig)
from olmo.model import OLMo
from olmo.safetensors_util import safetensors_file_to_state_dict, state_dict_to_safetensors_file

SAVED, MORE = 8, 13  # an epoch has 6 steps
SMALL = dict(MODEL, d_model=16, n_heads=2, n_layers=1, layer_norm_with_affine=True, weight_tying=False)


def config(folder):
    token_ids().tofile(f"{folder}/tokens.npy")
    cfg = TrainConfig(
        run_name="olmo", seed=6198, model=ModelConfig(**SMALL), max_duration=MORE, precision="fp32",
        optimizer=OptimizerConfig(name=OptimizerType.adamw, learning_rate=3e-3, weight_decay=0.1, betas=(0.9, 0.95),
                                  eps=1e-8, metrics_log_interval=1),
        scheduler=SchedulerConfig(name=SchedulerType.cosine_with_warmup, t_warmup=3, alpha_f=0.1),
        save_folder=folder, save_overwrite=True, global_train_batch_size=8, device_train_microbatch_size=4,
        max_grad_norm_ratio=1.2, max_grad_norm=None,
        data=DataConfig(paths=[f"{folder}/tokens.npy"], memmap_dtype="uint16", drop_last=True, num_workers=0, seed=34))
    cfg.device_train_batch_size, cfg.device_train_grad_accum = 8, 2
    return cfg


def optim_state_of(trainer):
    """As FSDP.optim_state_dict() gives it: by name."""
    names = {parameter: name for name, parameter in trainer.model.named_parameters()}
    groups = [dict(group, **{key: [names[p] for p in group["params"]] for key in ("params", "param_names")}) for group in trainer.optim.param_groups]
    return {"state": {names[p]: dict(state) for p, state in trainer.optim.state.items()}, "param_groups": groups}


def save_other_forms(trainer, folder):
    for form in ("pickled", "by_number"):
        (folder / form).mkdir(exist_ok=True)
    torch.save(trainer.model.state_dict(), folder / "pickled/model.pt")
    torch.save(optim_state_of(trainer), folder / "pickled/optim.pt")
    torch.save(trainer.optim.state_dict(), folder / "by_number/optim.pt")
    state_dict_to_safetensors_file(trainer.optim.state_dict(), folder / "by_number/optim.safetensors")


def restored(cfg, folder, counters):
    trainer = trainer_of(cfg, safetensors_file_to_state_dict(folder / "model.safetensors"))
    saved = safetensors_file_to_state_dict(folder / "optim.safetensors")
    for name, parameter in trainer.model.named_parameters():
        trainer.optim.state[parameter].update(saved["state"][name])
    trainer.epoch = None  # not another than the counters say
    trainer.load_trainer_state_dict(counters)
    return trainer


def main():
    torch.set_num_threads(1)
    torch.manual_seed(6198)
    folder = OUT / "olmo_checkpoint"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        cfg = config(scratch)
        before = trainer_of(cfg, OLMo(cfg.model).state_dict())
        train(before, SAVED)
        state_dict_to_safetensors_file(before.model.state_dict(), folder / "model.safetensors")
        state_dict_to_safetensors_file(optim_state_of(before), folder / "optim.safetensors")
        save_other_forms(before, folder)
        per_epoch = before.batches_per_epoch
        counters = dict(epoch=SAVED // per_epoch, global_step=SAVED,
                        global_train_examples_seen_this_epoch=SAVED % per_epoch * 8,
                        global_train_tokens_seen=SAVED * 8 * LENGTH, world_size=1, checkpoints=[], unsharded_checkpoints=[],
                        ephemeral_checkpoints=[])
        rng = torch.get_rng_state()
        torch.save(counters | dict(rng=dict(python=random.getstate(), numpy=np.random.get_state(), torch=rng, cuda=rng)),
                   folder / "train.pt")
        steps, _ = train(restored(cfg, folder, counters), MORE - SAVED)
        cfg.data.paths, cfg.save_folder = ["tokens.npy"], "run"
        cfg.save(folder / "config.yaml")
    (folder / "after.json").write_text("[\n" + ",\n".join(json.dumps(step) for step in steps) + "\n]\n")
    print([step["ce_loss"] for step in steps])


if __name__ == "__main__":
    main()
