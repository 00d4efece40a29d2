"""Makes tests/data/train/trajectory_*.safetensors: a few steps of OLMo's own trainer on a very small model.

Needs: pip install ai2-olmo==0.6.0 torch==2.11.0 numpy==2.4.6 safetensors
Run:   python3 tests/goldens/make_trajectory.py

trajectory_init.safetensors holds the initial weights of all cases, trajectory_CASE.safetensors the weights after the last
step. Its metadata "description" is JSON: the settings (OLMo's keys), each step's facts, and `fp64_divergence`, the distance
of the fp32 run from the same run in float64, which bounds what can be asked of another implementation.
The tokens are token_ids(); the test writes the same ones.
"""

import json
import math
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from olmo.config import (DataConfig, ModelConfig, OptimizerConfig, OptimizerType, SchedulerConfig, SchedulerType,
                         TrainConfig)
from olmo.data import build_train_dataloader
from olmo.model import OLMo
from olmo.optim import build_optimizer, build_scheduler
from olmo.torch_util import get_world_size
from olmo.train import Trainer
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "train"
LENGTH, INSTANCES, STEPS = 32, 52, 10
MODEL = dict(
    d_model=32, n_heads=4, n_layers=2, mlp_ratio=4, activation_type="swiglu", block_type="sequential", rope=True,
    include_bias=False, weight_tying=True, layer_norm_type="default", layer_norm_with_affine=False,
    attention_layer_norm_with_affine=False, bias_for_layer_norm=False, max_sequence_length=LENGTH, vocab_size=127,
    embedding_size=128, eos_token_id=126, pad_token_id=1, init_fn="mitchell", attention_dropout=0.0,
    residual_dropout=0.0, embedding_dropout=0.0,
)
CASES = {
    # Micro-batches, z-loss, a clip that warms up, two epochs.
    "adamw": dict(
        optimizer=dict(name="adamw", learning_rate=3e-3, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-5,
                       decay_norm_and_bias=False, decay_embeddings=False),
        scheduler=dict(name="linear_with_warmup", t_warmup=3, alpha_f=0.1, grad_clip_warmup_steps=4,
                       grad_clip_warmup_factor=10.0),
        global_train_batch_size=8, device_train_microbatch_size=2, max_grad_norm=0.2, max_grad_norm_ratio=None,
        softmax_auxiliary_loss=True, data_seed=34),
    "lionw": dict(
        optimizer=dict(name="lionw", learning_rate=2e-4, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-5,
                       decay_norm_and_bias=True, decay_embeddings=True),
        scheduler=dict(name="cosine_with_warmup", t_warmup=2, alpha_f=0.1),
        global_train_batch_size=4, device_train_microbatch_size=4, max_grad_norm=1.0, max_grad_norm_ratio=None,
        softmax_auxiliary_loss=False, data_seed=2),
    "adaptive": dict(
        optimizer=dict(name="adamw", learning_rate=2e-3, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-5,
                       decay_norm_and_bias=True, decay_embeddings=True),
        scheduler=dict(name="inverse_sqrt_with_warmup", t_warmup=3, alpha_f=0.1),
        global_train_batch_size=4, device_train_microbatch_size=4, max_grad_norm=None, max_grad_norm_ratio=0.9,
        softmax_auxiliary_loss=False, data_seed=1),
    # The last micro-batch of a step is smaller than the others.
    "uneven": dict(
        optimizer=dict(name="adamw", learning_rate=2e-3, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-5,
                       decay_norm_and_bias=True, decay_embeddings=True),
        scheduler=dict(name="cosine_with_warmup", t_warmup=2, alpha_f=0.1),
        global_train_batch_size=5, device_train_microbatch_size=3, max_grad_norm=1.0, max_grad_norm_ratio=None,
        softmax_auxiliary_loss=True, data_seed=5),
    # Attention keeps to documents: within 16 of the 52 instances one ends with 111, the most frequent token.
    "documents": dict(
        optimizer=dict(name="adamw", learning_rate=3e-3, weight_decay=0.1, betas=(0.9, 0.95), eps=1e-5,
                       decay_norm_and_bias=True, decay_embeddings=True),
        scheduler=dict(name="cosine_with_warmup", t_warmup=2, alpha_f=0.1),
        global_train_batch_size=4, device_train_microbatch_size=2, max_grad_norm=1.0, max_grad_norm_ratio=None,
        softmax_auxiliary_loss=False, data_seed=3, eos_token_id=111, generate_doc_lengths=True),
}


def attention_within_documents(q, k, v, starts, _starts, longest, _longest, dropout_p, causal):
    """What OLMo asks of flash_attn_varlen_func, which needs a GPU: q (tokens, heads, head_dim), k and v likewise; `starts` of each
    document, and the end."""
    assert causal and dropout_p == 0 and starts.diff().max() == longest
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    documents = [F.scaled_dot_product_attention(*(x[begin:end].transpose(0, 1)[None] for x in (q, k, v)), is_causal=True)[0]
                 for begin, end in zip(starts.tolist(), starts[1:].tolist())]
    return torch.cat(documents, dim=1).transpose(0, 1)


class OneProcess(torch.nn.Module):
    """What the trainer asks of its DDP or FSDP wrapper."""

    process_group = None

    def __init__(self, model):
        super().__init__()
        self.module = model

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def token_ids():
    numbers = np.arange(LENGTH * INSTANCES, dtype=np.uint64)
    return ((numbers * numbers * 2654435761 % 2**32 >> 16) % 126).astype(np.uint16)


def model_of(case):
    return {**MODEL, "eos_token_id": case.get("eos_token_id", MODEL["eos_token_id"])}


def filled_in(cfg):
    """What OLMo's scripts/train.py fills in; every step tells all that it knows."""
    cfg.device_train_batch_size = cfg.global_train_batch_size // get_world_size()
    cfg.device_train_grad_accum = cfg.device_train_batch_size // cfg.device_train_microbatch_size
    if (no_decay := cfg.optimizer.no_decay_norm_and_bias) is not None:
        cfg.optimizer.decay_norm_and_bias = cfg.optimizer.decay_embeddings = not no_decay
    cfg.optimizer.metrics_log_interval = 1
    return cfg


def trainer_of(cfg, init, dtype=torch.float32, wrap=lambda model, cfg: OneProcess(model)):
    model = OLMo(cfg.model)
    model.load_state_dict(init)
    model = model.to(dtype)
    for block in model.transformer.blocks:
        block.flash_attn_varlen_func = attention_within_documents
    dist_model = wrap(model, cfg)
    return Trainer(cfg=cfg, model=model, dist_model=dist_model, optim=build_optimizer(cfg, dist_model),
                   scheduler=build_scheduler(cfg), train_loader=build_train_dataloader(cfg),
                   device=torch.device("cpu"), evaluators=[], epoch=0)


def build_trainer(case, folder, init, dtype):
    token_ids().tofile(f"{folder}/tokens.npy")
    optimizer = {**case["optimizer"], "name": OptimizerType(case["optimizer"]["name"])}
    scheduler = {**case["scheduler"], "name": SchedulerType(case["scheduler"]["name"])}
    cfg = TrainConfig(
        run_name="trajectory", seed=6198, model=ModelConfig(**model_of(case)), optimizer=OptimizerConfig(**optimizer),
        scheduler=SchedulerConfig(**scheduler), max_duration=STEPS, precision="fp32", save_folder=folder,
        save_overwrite=True, global_train_batch_size=case["global_train_batch_size"],
        device_train_microbatch_size=case["device_train_microbatch_size"], max_grad_norm=case["max_grad_norm"],
        max_grad_norm_ratio=case["max_grad_norm_ratio"], softmax_auxiliary_loss=case["softmax_auxiliary_loss"],
        data=DataConfig(paths=[f"{folder}/tokens.npy"], memmap_dtype="uint16", drop_last=True, num_workers=0,
                        seed=case["data_seed"], generate_doc_lengths=case.get("generate_doc_lengths", False)),
    )
    return trainer_of(filled_in(cfg), init, dtype)


def weights_of(trainer):
    """Every weight by its name in the model; under FSDP on ranks a copy, for a rank has a part of each."""
    if isinstance(trainer.dist_model, FSDP):
        return get_model_state_dict(trainer.dist_model, options=StateDictOptions(full_state_dict=True))
    return {name: weight.detach() for name, weight in trainer.model.named_parameters()}


def train(trainer, count):
    """What olmo.train.Trainer.fit does for the data and the counters, around its train_step; but it ends with the last epoch of
    max_duration, if that comes first. Returns the facts of each step and the weights at the end."""
    steps, epoch, ranks = [], trainer.epoch or 0, get_world_size()
    while True:
        for batch in trainer.train_loader:
            groups = trainer.optim.param_groups
            used = groups[0]["max_grad_norm"]
            trainer.global_step += 1
            trainer.global_train_examples_seen_this_epoch += batch["input_ids"].shape[0] * ranks
            trainer.global_train_tokens_seen += batch["input_ids"].numel() * ranks
            metrics = trainer.train_step(batch, reduce_global_loss=ranks > 1)
            weights = weights_of(trainer)
            norm = math.sqrt(sum(float(weight.double().square().sum()) for weight in weights.values()))
            steps.append(dict(
                step=trainer.global_step, epoch=epoch, index=[int(i) for i in batch["index"]],
                ce_loss=metrics["train/CrossEntropyLoss"], z_loss=metrics.get("train/ZLoss"), lr=groups[0]["lr"],
                max_grad_norm=used, total_grad_norm=metrics["optim/total_grad_norm"],
                param_norm=norm,
                tokens=trainer.global_train_tokens_seen))
            if len(steps) == count:
                return steps, {name: weight.clone() for name, weight in weights.items()}
        epoch += 1
        trainer.epoch, trainer.global_train_examples_seen_this_epoch = epoch, 0
        trainer.dataset.start_index = 0  # where the trainer went on from a checkpoint, it is not
        trainer.dataset.reshuffle(epoch)


def run(case, init, dtype):
    with tempfile.TemporaryDirectory() as folder:
        return train(build_trainer(case, folder, init, dtype), STEPS)


def norm_in_own_type(x, order, dtype=None, norm=torch.linalg.vector_norm):
    """The optimizer asks for float32 norms, which torch refuses to take of float64 tensors."""
    return norm(x, order)


def run_in_float64(case, init):
    narrow = torch.linalg.vector_norm
    torch.linalg.vector_norm = norm_in_own_type
    try:
        return run(case, init, torch.float64)
    finally:
        torch.linalg.vector_norm = narrow


def divergence(a, b):
    (steps_a, final_a), (steps_b, final_b) = a, b
    return dict(
        max_abs_ce_loss=max(abs(x["ce_loss"] - y["ce_loss"]) for x, y in zip(steps_a, steps_b)),
        max_rel_total_grad_norm=max(abs(x["total_grad_norm"] / y["total_grad_norm"] - 1)
                                    for x, y in zip(steps_a, steps_b)),
        max_abs_final_weight=max(float((final_a[n].double() - final_b[n]).abs().max()) for n in final_a))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(6198)
    init = OLMo(ModelConfig(**MODEL)).state_dict()
    init = {name: tensor.detach().clone() for name, tensor in init.items()}
    OUT.mkdir(parents=True, exist_ok=True)
    save_file(init, OUT / "trajectory_init.safetensors")
    for name, case in CASES.items():
        steps, final = single = run(case, init, torch.float32)
        apart = divergence(single, run_in_float64(case, init))
        print(name, apart, steps[0]["ce_loss"], steps[-1]["ce_loss"])
        description = dict(reference="olmo.train.Trainer.train_step, ai2-olmo 0.6.0, torch " + torch.__version__,
                           model=model_of(case), settings=case, steps=steps, fp64_divergence=apart, max_duration=STEPS)
        save_file(final, OUT / f"trajectory_{name}.safetensors", metadata={"description": json.dumps(description)})


if __name__ == "__main__":
    main()
