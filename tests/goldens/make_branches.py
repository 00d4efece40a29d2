"""Makes tests/data/train/branches.json: which instances the steps of OLMo's own trainer see that takes over a checkpoint.

Needs: pip install ai2-olmo==0.6.0 torch==2.11.0 numpy==2.4.6 safetensors wandb
Run:   python3 tests/goldens/make_branches.py

A training of `steps` steps is walked through without computing; another of the same data, with the settings of a case, takes
over its counters by OLMo's Trainer.load_trainer_state_dict and is walked through for a few steps more. Each case holds for these
the step, the epoch and the numbers of the instances. The data are `instances` instances, of which an epoch's order is shuffled.
"""

import json
import tempfile

import torch
from make_trajectory import MODEL, OUT, trainer_of
import numpy as np
from olmo.config import (DataConfig, ModelConfig, OptimizerConfig, OptimizerType, SchedulerConfig, SchedulerType,
                         TrainConfig)
from olmo.model import OLMo

INSTANCES, BATCH, SEED, MORE = 23, 4, 3, 8
CASES = [dict(steps=steps, **settings) for steps in (0, 3, 5, 7) for settings in (
    {}, dict(global_train_batch_size=2), dict(global_train_batch_size=8), dict(global_train_batch_size=3),
    dict(epoch=0), dict(epoch=1), dict(epoch=2), dict(epoch=1, global_train_batch_size=8),
    dict(fast_forward_batches=1), dict(fast_forward_batches=2, global_train_batch_size=8), dict(fast_forward_batches=9),
    dict(restore_dataloader=False), dict(restore_dataloader=False, epoch=1),
    dict(restore_dataloader=False, fast_forward_batches=2, global_train_batch_size=8))]


def trainer(folder, **settings):
    settings = {"global_train_batch_size": BATCH, **settings}
    cfg = TrainConfig(
        run_name="branch", seed=SEED, model=ModelConfig(**MODEL), optimizer=OptimizerConfig(name=OptimizerType.adamw),
        scheduler=SchedulerConfig(name=SchedulerType.constant), max_duration=1000, precision="fp32",
        save_folder=str(folder), save_overwrite=True, device_train_microbatch_size=1,
        data=DataConfig(paths=[f"{folder}/tokens.npy"], memmap_dtype="uint16", drop_last=True, num_workers=0), **settings)
    cfg.device_train_batch_size = cfg.global_train_batch_size
    made = trainer_of(cfg, OLMo(cfg.model).state_dict())
    made.epoch = cfg.epoch
    return made


def walk(trainer, last_step):
    """What olmo.train.Trainer.fit does around its train_step, for the data and the counters."""
    seen = []
    for epoch in range(trainer.epoch or 0, trainer.max_epochs):
        for batch in trainer.train_loader:
            if trainer.global_step >= last_step:
                return seen
            trainer.global_step += 1
            trainer.global_train_examples_seen_this_epoch += batch["input_ids"].shape[0]
            trainer.global_train_tokens_seen += batch["input_ids"].numel()
            seen.append([trainer.global_step, epoch, [int(i) for i in batch["index"]]])
            if trainer.global_step >= last_step:
                return seen
        trainer.epoch, trainer.global_train_examples_seen_this_epoch, trainer.dataset.start_index = epoch + 1, 0, 0
        trainer.dataset.reshuffle(trainer.epoch)
    return seen


def case_of(case):
    case = dict(case)
    steps = case.pop("steps")
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as after:
        for folder in (before, after):
            np.zeros(INSTANCES * MODEL["max_sequence_length"], dtype=np.uint16).tofile(f"{folder}/tokens.npy")
        first = trainer(before)
        walk(first, steps)
        # What trainer_state_dict() holds, but for the states of random generators, which ask for a GPU.
        state = dict(epoch=first.epoch or 0, global_step=first.global_step,
                     global_train_examples_seen_this_epoch=first.global_train_examples_seen_this_epoch,
                     global_train_tokens_seen=first.global_train_tokens_seen, world_size=1, checkpoints=[],
                     unsharded_checkpoints=[], ephemeral_checkpoints=[])
        branch = trainer(after, **case)
        branch.load_trainer_state_dict(state)
        return {"steps": steps, "settings": case, "seen": walk(branch, branch.global_step + MORE)}


def main():
    torch.manual_seed(SEED)
    cases = [case_of(case) for case in CASES]
    text = ",\n".join("    " + json.dumps(case) for case in cases)
    head = json.dumps({"reference": "olmo.train.Trainer, ai2-olmo 0.6.0", "instances": INSTANCES, "batch_size": BATCH, "seed": SEED})
    (OUT / "branches.json").write_text(f'{head[:-1]},\n  "cases": [\n{text}\n  ]}}\n')
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
