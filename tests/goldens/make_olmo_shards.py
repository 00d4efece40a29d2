"""Makes tests/data/train/olmo_shards: the checkpoint of tests/data/train/olmo_checkpoint as OLMo's trainer saves it in shards.

Needs: as make_trajectory.py, and pip install ai2-olmo-core==0.1.0
Run:   python3 tests/goldens/make_olmo_shards.py, after make_olmo_checkpoint.py

RANKS processes hold the weights, the optimizer's state and the trainer's counters under FSDP, and OLMo's four sharded checkpointers
save them: torch_new, torch_legacy, local, olmo_core. OLMo lets `local` save with torch before 2.3 only; the places that it saves have
not changed since, so it is told of 2.2. local_2_0 has the models of `local` with the places told as torch 2.0 did. The trainer's file
is kept of one rank of torch_new, and no config.yaml: it is the one of olmo_checkpoint.
"""

import os
import pathlib
import shutil

import olmo.checkpoint as checkpoint
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from olmo.config import ShardedCheckpointerType, TrainConfig
from olmo.model import OLMo
from olmo.optim import build_optimizer
from olmo.safetensors_util import safetensors_file_to_state_dict
from packaging import version
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy

DATA = pathlib.Path(__file__).resolve().parent.parent / "data/train"
SAVED, OUT = DATA / "olmo_checkpoint", DATA / "olmo_shards"
RANKS = 3
TYPES = ("torch_new", "torch_legacy", "local", "olmo_core")


class OlderTorch:
    """In place of packaging.version in olmo.checkpoint."""

    @staticmethod
    def parse(text):
        return version.parse("2.2.0" if text == torch.__version__ else text)


def join(rank):
    os.environ |= dict(RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(RANKS),
                       FS_LOCAL_RANK=str(rank), NUM_NODES="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29713")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)


def sharded(cfg):
    """The saved model and optimizer, of whose flat tensors each rank has a part."""
    torch.manual_seed(0)
    model = OLMo(cfg.model)
    model.load_state_dict(safetensors_file_to_state_dict(SAVED / "model.safetensors"))
    model = FSDP(model, sharding_strategy=ShardingStrategy.FULL_SHARD, auto_wrap_policy=model.get_fsdp_wrap_policy("by_block"),
                 use_orig_params=True, device_id=torch.device("cpu"))
    optim = build_optimizer(cfg, model)
    saved = safetensors_file_to_state_dict(SAVED / "optim.safetensors")["state"]
    for prefix, module in model.named_modules():
        if not isinstance(module, FSDP):
            continue
        flat = module._handle.flat_param
        for parameter, name, place in zip(flat._params, flat._fqns, flat._shard_param_infos):
            if not place.in_shard:
                continue
            name = f"{prefix}.{name}".replace("_fsdp_wrapped_module", "").replace("..", ".").strip(".")
            part = slice(place.intra_param_start_idx, place.intra_param_end_idx + 1)
            optim.state[parameter] = {key: value.flatten()[part].clone() if value.dim() else value.clone()
                                      for key, value in saved[name].items()}
    return model, optim


def save(rank):
    join(rank)
    cfg = TrainConfig.load(SAVED / "config.yaml", validate_paths=False)
    cfg.save_overwrite = True
    model, optim = sharded(cfg)
    counters = torch.load(SAVED / "train.pt", weights_only=False)
    for name in TYPES:
        checkpointer = checkpoint.build_sharded_checkpointer(cfg, name=ShardedCheckpointerType(name))
        if name == "local":
            checkpoint.version = OlderTorch
        checkpointer.save_checkpoint(OUT / name, model, optim, dict(counters))
        checkpoint.version = version
        dist.barrier()
    dist.destroy_process_group()


def tell_as_torch_2_0(handle):
    places = handle.pop("flat_param._shard_param_infos")
    held = [i for i, place in enumerate(places) if place.in_shard]
    handle["flat_param._shard_indices"] = (held[0], held[-1]) if held else (0, 0)
    handle["flat_param._shard_param_offsets"] = tuple(
        (places[i].intra_param_start_idx, places[i].intra_param_end_idx) for i in held)


def make_local_2_0():
    shutil.copytree(OUT / "local/model", OUT / "local_2_0/model")
    shutil.copy(OUT / "local/metadata.yaml", OUT / "local_2_0")
    for file in (OUT / "local_2_0/model").iterdir():
        state = torch.load(file, weights_only=False)
        for module in state["modules"]:
            for handle in module["handles"]:
                tell_as_torch_2_0(handle)
        torch.save(state, file)
    cfg = TrainConfig.load(SAVED / "config.yaml", validate_paths=False)
    model, _, _ = checkpoint.LocalShardedCheckpointer(cfg).unshard_checkpoint(OUT / "local_2_0", load_optimizer_state=False,
                                                                             load_trainer_state=False)
    for name, tensor in safetensors_file_to_state_dict(SAVED / "model.safetensors").items():
        assert torch.equal(model[name], tensor), name


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    mp.spawn(save, nprocs=RANKS)
    make_local_2_0()
    for name in TYPES:
        (OUT / name / "config.yaml").unlink()
        for file in (OUT / name).glob("train/*.pt"):
            if (name, file.name) != ("torch_new", "rank0.pt"):
                file.unlink()


if __name__ == "__main__":
    main()
