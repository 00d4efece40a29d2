"""Trains by OLMo's own trainer on a CPU, from an OLMo config, in one of several arithmetics. scripts/against_olmo.py uses it.

Needs: as make_trajectory.py

`fp32`, `fp64`: as torch computes them. `bf16`: OLMo's amp_bf16 as a GPU rounds it, in the definition that the config's
distributed_strategy chooses; see make_model_bf16.py. `noisy`: the same, with every value that is rounded to bf16 moved before by up
to 2^-22 of its size, which is what another order of sums or another exponential does.

A process that joined others trains with them, under the DDP or FSDP of torch that OLMo's scripts/train.py makes; see `Ranks`.
"""

import contextlib
import functools
import logging
import multiprocessing
import os
import pathlib
import pickle
import warnings

import make_model_bf16
import make_trajectory
import torch
import torch.nn.functional as F
from olmo.config import TrainConfig
from olmo.eval import build_evaluator
from olmo.model import OLMo, OLMoBlock
from olmo.optim import BoltOnWarmupScheduler
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

AUTOCAST = torch.autocast
LINEAR, LAYER_NORM, EMBEDDING, VECTOR_NORM = F.linear, F.layer_norm, F.embedding, torch.linalg.vector_norm
ATTENTION = OLMoBlock._scaled_dot_product_attention


class CpuAutocast(AUTOCAST):
    """The trainer asks for CUDA's; in fp32 there is nothing to cast."""

    def __init__(self, device_type, **settings):
        if settings.get("dtype") == torch.float32:
            settings = dict(enabled=False)
        super().__init__("cpu", **settings)


class Noise:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, x):
        up_to_one = 2 * torch.rand(x.shape, generator=self.generator, dtype=torch.float64) - 1
        return x * (1 + up_to_one * 2.0**-22)


class Embedding(torch.autograd.Function):
    """Its gradient as a GPU adds it: one sum in fp32 for each id, rounded once. torch rounds each addition on a CPU."""

    @staticmethod
    def forward(ctx, ids, weight):
        ctx.ids, ctx.weight = ids, weight
        return EMBEDDING(ids, weight)

    @staticmethod
    def backward(ctx, dy):
        gradient = torch.zeros(ctx.weight.shape)
        gradient.index_put_((ctx.ids.flatten(),), dy.flatten(0, -2).float(), accumulate=True)
        return None, gradient.to(ctx.weight.dtype)


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, noisy):
        ctx.noisy = noisy
        return noisy(x).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        return ctx.noisy(dy).to(dy.dtype), None


def compute_as(arithmetic, seed=0):
    """Sets torch's and OLMo's functions; `seed` is that of the noise."""
    torch.autocast = CpuAutocast
    F.linear, F.layer_norm, F.embedding, torch.linalg.vector_norm = LINEAR, LAYER_NORM, EMBEDDING, VECTOR_NORM
    OLMoBlock._scaled_dot_product_attention = ATTENTION
    torch.set_default_dtype(torch.float64 if arithmetic == "fp64" else torch.float32)
    if arithmetic == "fp64":
        torch.linalg.vector_norm = make_trajectory.norm_in_own_type
    if arithmetic in ("fp32", "fp64"):
        return
    F.embedding = lambda ids, weight, *more, **settings: Embedding.apply(ids, weight)
    if arithmetic == "bf16":
        F.layer_norm = make_model_bf16.layer_norm_in_fp32
        make_model_bf16.sums_in(torch.float32, LINEAR)
    else:
        noisy = Noise(seed)
        inside = lambda x, *rest: Noisy.apply(LAYER_NORM(Noisy.apply(x, noisy), *rest), noisy)
        F.layer_norm = functools.partial(make_model_bf16.layer_norm_in_fp32, original=inside)
        make_model_bf16.sums_in(torch.float64, noisy=noisy)


class OneProcess(make_trajectory.OneProcess):
    """FSDP's `mixed` gives the model one bf16 copy of its parameters, and adds up in fp32 what flows back to each of them."""

    no_sync = contextlib.nullcontext

    def __init__(self, model, mixed):
        super().__init__(model)
        self.mixed = mixed

    def forward(self, *args, **kwargs):
        if not self.mixed:
            return self.module(*args, **kwargs)
        copies = {name: parameter.bfloat16() for name, parameter in self.module.named_parameters()}
        return torch.func.functional_call(self.module, copies, args, kwargs)


def raise_logits(trainer):
    """CUDA's autocast computes losses of bf16 logits in fp32; the CPU's does not. The trainer forgets the z-loss's factor."""
    loss, factor = trainer.loss_fn, trainer.cfg.auxiliary_loss_multiplier

    def raised(logits, labels, **settings):
        with AUTOCAST("cpu", enabled=False):
            logits = logits.float() if logits.dtype == torch.bfloat16 else logits
            return loss(logits, labels, z_loss_multiplier=factor, **settings)

    trainer.loss_fn = raised


def wrapped(model, cfg):
    """What OLMo's scripts/train.py makes of a model for the trainer."""
    mixed = cfg.precision == "amp_bf16" and cfg.distributed_strategy == "fsdp"
    if not torch.distributed.is_initialized():
        return OneProcess(model, mixed)
    if cfg.distributed_strategy == "ddp":
        return DistributedDataParallel(model, find_unused_parameters=cfg.ddp.find_unused_params)
    return FullyShardedDataParallel(
        model, sharding_strategy=cfg.fsdp.sharding_strategy, mixed_precision=cfg.fsdp_precision if mixed else None, limit_all_gathers=True,
        auto_wrap_policy=model.get_fsdp_wrap_policy(cfg.fsdp.wrapping_strategy), use_orig_params=cfg.fsdp.use_orig_params,
        device_id=torch.device("cpu"))


def initial_weights(config_file, seed):
    compute_as("fp32")  # whatever this process trained before
    torch.manual_seed(seed)
    model = OLMo(TrainConfig.load(config_file).model)
    model.reset_parameters()
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}


def trainer_of(config_file, weights, arithmetic):
    cfg = make_trajectory.filled_in(TrainConfig.load(config_file))
    if torch.distributed.is_initialized():
        # A folder each: rank 0 writes the order of an epoch over that of the epoch before, which others may still read through their maps.
        cfg.save_folder += f"-{torch.distributed.get_rank()}"
        pathlib.Path(cfg.save_folder, "train_data").mkdir(parents=True, exist_ok=True)
    trainer = make_trajectory.trainer_of(cfg, weights, torch.float64 if arithmetic == "fp64" else torch.float32, wrapped)
    raise_logits(trainer)
    return trainer


def take_over(trainer, other):
    """What Trainer.restore_checkpoint takes of a checkpoint of `other` after its last step, and what OLMo's scripts/train.py does around it."""
    cfg = trainer.cfg
    trainer.epoch = cfg.epoch
    if not cfg.reset_optimizer_state:
        trainer.optim.load_state_dict(other.optim.state_dict())
    if not cfg.reset_trainer_state:
        # trainer_state_dict() asks a GPU for its random state; none of its entries here is a random state.
        trainer.load_trainer_state_dict(dict(
            epoch=other.epoch or 0, global_step=other.global_step, global_train_examples_seen_this_epoch=other.global_train_examples_seen_this_epoch,
            global_train_tokens_seen=other.global_train_tokens_seen, checkpoints=[], unsharded_checkpoints=[]))
        if cfg.reset_optimizer_state:
            trainer.scheduler = BoltOnWarmupScheduler.wrap(
                trainer.scheduler, trainer.global_step, int(trainer.global_step + cfg.scheduler.t_warmup))


def evaluate(trainer):
    trainer.evaluators = [build_evaluator(trainer.cfg, evaluator, None, trainer.device) for evaluator in trainer.cfg.evaluators]
    return {name: float(value) for name, value in trainer.eval().items()}


def train(config_file, weights, arithmetic, seed=0, branch_file=None):
    """Returns the facts of every step, the first moments after the first step, the weights at the end, and what the evaluators then say; with
    `branch_file` of two trainings, of which the second, of that config, goes on from the last step of the first."""
    compute_as(arithmetic, seed)
    trainer = trainer_of(config_file, weights, arithmetic)
    first = {}

    def keep_first(optimizer, args, kwargs):
        if not first:
            state = get_optimizer_state_dict(trainer.dist_model, optimizer, options=StateDictOptions(full_state_dict=True))["state"]
            first.update({name.removeprefix("module."): moments["exp_avg"].double().clone() for name, moments in state.items()})

    trainer.optim.register_step_post_hook(keep_first)
    steps, final = make_trajectory.train(trainer, trainer.max_steps)
    evaluations = [evaluate(trainer)]
    if branch_file:
        branch = trainer_of(branch_file, final, arithmetic)
        take_over(branch, trainer)
        if branch.max_steps > branch.global_step:
            more, final = make_trajectory.train(branch, branch.max_steps - branch.global_step)
            steps += more
            evaluations.append(evaluate(branch))
    return steps, first, {name: weight.double() for name, weight in final.items()}, evaluations


def serve(rank, ranks, store, pipe):
    """A rank: trains what it's asked to, until nobody asks any more."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    os.environ |= {name: str(rank) for name in ("RANK", "LOCAL_RANK")} | dict(LOCAL_WORLD_SIZE=str(ranks), FS_LOCAL_RANK="0")
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    with contextlib.suppress(EOFError):
        while True:
            pipe.send_bytes(pickle.dumps(train(*pickle.loads(pipe.recv_bytes()))))


class Ranks:
    """Processes that train together, joined by Gloo through the file `store`, which must not be there yet."""

    def __init__(self, count, store):
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(count):
            ours, its = context.Pipe()
            process = context.Process(target=serve, args=(rank, count, store, its))
            process.start()
            its.close()  # so that the end of the process is the end of the pipe
            self.pipes.append(ours)
            self.processes.append(process)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        for process in self.processes:
            process.kill()
            process.join()

    def train(self, *arguments):
        """As train(); what rank 0 returns."""
        for pipe in self.pipes:
            pipe.send_bytes(pickle.dumps(arguments))
        return [pickle.loads(pipe.recv_bytes()) for pipe in self.pipes][0]
