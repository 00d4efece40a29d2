#!/usr/bin/env python3
"""Trains random small models by OLMo's own trainer and by the harness, from the same config file, weights and tokens; makes reports/against_olmo.md.

Needs: pip install 'ai2-olmo[train]==0.6.0' torch==2.11.0 numpy==2.4.6 h5py
Run:   scripts/against_olmo.py HARNESS [--seeds FIRST LAST] [--jobs N] [--output reports/against_olmo.md]

A seed decides a whole config: model, optimizer, schedule, batches, data, precision. Keys are left out at random, so that defaults are compared, too.
Counters, learning rates and limits must be equal. Losses, norms, gradients and weights are held to how far the reference comes from itself: in
fp32 when its initial weights differ by half an ulp, and in float64; in bf16 when what it rounds differs before by 2^-22. Exits 1 if a training
is more than LIMIT times that away.
"""
import argparse
import collections
import concurrent.futures
import datetime
import math
import multiprocessing
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 3
USAGE_ERROR = 2  # the harness's exit code for what it does not support
# The reference counts as at least so far from itself: what the rounding of a float or two makes.
FLOOR = {"loss": 2e-6, "z-loss": 1e-7, "gradient norm": 1e-5, "first gradient": 1e-6, "weights": 1e-5}
EXACT = ("step", "epoch", "tokens", "lr", "max_grad_norm")

Drawn = collections.namedtuple("Drawn", "config instances files tail masked repeats labelled")
Result = collections.namedtuple("Result", "seed group documents steps told wrong distance spread")


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def of(self, *values):
        return self.random.choice(values)

    def sometimes(self, share, settings, **choices):
        """Sets each key to one of its values, or leaves it out."""
        for key, values in choices.items():
            if self.random.random() < share:
                settings[key] = self.of(*values)


def random_model(draw):
    heads = draw.of(1, 2, 3, 4, 6)
    vocabulary = draw.of(97, 128, 300, 1000)
    model = dict(
        d_model=heads * draw.of(8, 16, 24, 32, 64), n_heads=heads, n_layers=draw.of(1, 2, 3), rope=True, include_bias=False,
        attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0, max_sequence_length=draw.of(8, 17, 32, 33, 64),
        vocab_size=vocabulary, embedding_size=draw.of(vocabulary, (vocabulary + 127) // 128 * 128), eos_token_id=vocabulary - 1, pad_token_id=1,
        bias_for_layer_norm=draw.of(True, False), init_fn=draw.of("mitchell", "normal", "full_megatron"))
    both = (True, False)
    draw.sometimes(0.5, model, attention_layer_norm=both, attention_layer_norm_with_affine=both, layer_norm_with_affine=both, weight_tying=both,
                   rope_theta=(100, 10000, 500000))
    draw.sometimes(0.7, model, activation_type=("swiglu",), layer_norm_type=("default", "low_precision", "rms"))
    draw.sometimes(0.3, model, clip_qkv=(0.05, 0.5, 8.0), layer_norm_eps=(1e-6, 1e-5, 1e-3), norm_after=(True,), init_std=(0.01, 0.05))
    draw.sometimes(0.2, model, scale_emb_init=(True,))
    width = {}
    draw.sometimes(0.4, width, mlp_hidden_size=[n * model["d_model"] for n in (2, 4, 10)])
    if not width:
        draw.sometimes(0.6, width, mlp_ratio=(2, 4, 8))
    grouped = {}
    draw.sometimes(0.3, grouped, multi_query_attention=(True,))
    if not grouped:
        draw.sometimes(0.5, grouped, n_kv_heads=[n for n in range(1, heads + 1) if heads % n == 0])
    return {**model, **width, **grouped}


def random_optimizer(draw):
    optimizer = dict(name=draw.of("adamw", "adamw", "adamw", "lionw"), learning_rate=draw.of(3e-4, 1e-3, 3e-3))
    if optimizer["name"] == "lionw":
        optimizer["learning_rate"] /= 10
    draw.sometimes(0.6, optimizer, weight_decay=(0.0, 0.01, 0.1, 1.0), betas=([0.0, 0.95], [0.8, 0.99], [0.9, 0.999]))
    draw.sometimes(0.5, optimizer, eps=(1e-8, 1e-6, 1e-5), decay_norm_and_bias=(True, False), decay_embeddings=(True, False))
    draw.sometimes(0.15, optimizer, selective_updates=(True,), no_decay_norm_and_bias=(True, False))
    return optimizer


def random_schedule(draw, tokens_of_a_step):
    schedule = dict(name=draw.of("cosine_with_warmup", "linear_with_warmup", "inverse_sqrt_with_warmup", "max_scheduler", "constant",
                                 "cosine_linear_envelope", "constant_with_warmup"))
    draw.sometimes(0.3, schedule, units=("tokens",))
    unit = tokens_of_a_step if "units" in schedule else 1
    schedule["t_warmup"] = draw.of(1, 2, 4) * unit
    draw.sometimes(0.3, schedule, t_max=(5 * unit, 8 * unit, 30 * unit), grad_clip_warmup_steps=(2 * unit, 5 * unit), warmup_min_lr=(0.0, 1e-5))
    draw.sometimes(0.5, schedule, alpha_f=(0.0, 0.1, 0.5), grad_clip_warmup_factor=(5.0, 0.5))
    return schedule


def random_training(seed):
    draw = Draw(seed)
    model = random_model(draw)
    micro, steps = draw.of(1, 2, 3, 4), draw.of(4, 6, 10, 15)
    batch = draw.of(micro, 2 * micro, 3 * micro, 2 * micro + 1, 4 * micro)
    tokens = batch * model["max_sequence_length"]
    training = dict(
        run_name="random", seed=draw.random.randrange(10000), model=model, optimizer=random_optimizer(draw), scheduler=random_schedule(draw, tokens),
        global_train_batch_size=batch, device_train_microbatch_size=micro, precision=draw.of("fp32", "amp_bf16"),
        max_duration=draw.of(steps, f"{steps}", f"{steps * tokens}T", f"{steps * tokens + 1:e}T", "2ep"))
    draw.sometimes(0.6, training, max_grad_norm=(0.1, 1.0))
    draw.sometimes(0.2, training, max_grad_norm_ratio=(0.5, 1.2))
    draw.sometimes(0.4, training, softmax_auxiliary_loss=(True,))
    draw.sometimes(0.3, training, auxiliary_loss_multiplier=(1e-3, 1e-2))
    if training["precision"] == "fp32":
        draw.sometimes(0.2, model, scale_logits=(True,), rope_full_precision=(True, False))
    else:
        training.update(draw.of(dict(distributed_strategy="ddp", ddp={}), dict(distributed_strategy="fsdp", fsdp=dict(precision="mixed"))))
        if "fsdp" in training and "norm_after" in model:  # `default` is refused: its fp32 norms would end the bf16 residual stream
            model["layer_norm_type"] = draw.of("low_precision", "rms")
    data = training["data"] = dict(memmap_dtype=draw.of("uint16", "uint32"), drop_last=draw.of(True, True, False), num_workers=0)
    draw.sometimes(0.5, data, seed=(1, 34, 999))
    draw.sometimes(0.2, data, instance_filter=(dict(repetition_max_period=3, repetition_min_period=1, repetition_max_count=4),))
    per_epoch = draw.of(2, 3) if training["max_duration"] == "2ep" else draw.of(steps // 2 + 1, steps + 1)
    rest = draw.of(0, batch - 1) if data["drop_last"] else 0  # the trainer refuses a batch that is not full
    if Draw(f"documents of {seed}").random.random() < 0.25:
        data["generate_doc_lengths"] = True
        model["eos_token_id"] = seed % 17  # one of the frequent tokens
    return Drawn(training, batch * per_epoch + rest, draw.of(1, 2, 3), draw.of(0, 0, 5), draw.random.random() < 0.2, "instance_filter" in data,
                 draw.random.random() < 0.2)


def write_files(drawn, seed, folder):
    """Token files, label masks and config.yaml. Half of the tokens are of seventeen kinds, so that there is something to learn."""
    import numpy as np
    import yaml
    generator = np.random.default_rng(seed)
    length, vocabulary = (drawn.config["model"][key] for key in ("max_sequence_length", "vocab_size"))
    count = drawn.instances * length
    ids = generator.integers(0, vocabulary, count)
    ids = np.where(generator.random(count) < 0.5, ids % 17, ids).reshape(drawn.instances, length)
    if drawn.repeats:
        ids[::3, 1:12] = 5
    mask = generator.random(ids.shape) < 0.7
    edges = sorted({0, drawn.instances, *generator.integers(1, drawn.instances, drawn.files - 1).tolist()})
    paths, masks = [], []
    for first, last in zip(edges, edges[1:]):
        for array, kind, names in ((ids, drawn.config["data"]["memmap_dtype"], paths), (mask, "bool", masks)):
            names.append(f"{folder}/{kind}-{first}.npy")
            tail = array[0, :drawn.tail]  # too short for an instance
            np.concatenate([array[first:last].ravel(), tail]).astype(kind).tofile(names[-1])
    data = drawn.config["data"]
    if drawn.masked:
        data.update(paths=paths, label_mask_paths=masks)
    elif drawn.labelled:
        data["datasets"] = {f"label-{len(paths) - i}": [path] for i, path in enumerate(paths)}
    else:
        data["paths"] = paths
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({**drawn.config, "save_folder": f"{folder}/reference", "save_overwrite": True}, sort_keys=False))
    return file


class Ended(Exception):
    """The harness did not train to the end."""

    def __init__(self, code, told):
        super().__init__(f"exit {code}: {told}")
        self.code = code


def train_here(harness, config, weights, folder):
    """As reference_trainer.train: steps, first moments after the first step, weights at the end."""
    import h5py
    import numpy as np
    import torch

    run = folder / "run"
    words = [harness, "train", config, f"load_weights={weights}", "--run-dir", run, f"save_folder={run}", "save_interval=1", "threads=1"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Ended(done.returncode, done.stderr.strip().replace(str(config), config.name))

    def tensors(step, group):
        with h5py.File(run / step / "checkpoint.h5") as file:
            return {name: torch.from_numpy(np.asarray(file[group][name])).double() for name in file[group]}

    with sqlite3.connect(run / "run.db") as database:
        database.row_factory = sqlite3.Row
        steps = [dict(row, total_grad_norm=row["grad_norm"]) for row in database.execute("SELECT * FROM steps ORDER BY step")]
    return steps, tensors("step1", "optim/exp_avg"), tensors("latest", "model")


def distance(a, b, initial):
    """The largest over steps, or over tensors; that of weights is of all of them, as a share of what training changed."""
    steps = list(zip(a[0], b[0]))
    size = lambda tensors: math.sqrt(sum(float(tensor.square().sum()) for tensor in tensors))
    moved = size(b[2][name] - initial[name] for name in b[2])
    return {
        "loss": max(abs(x["ce_loss"] - y["ce_loss"]) for x, y in steps),
        "z-loss": max(abs((x["z_loss"] or 0) - (y["z_loss"] or 0)) for x, y in steps),
        "gradient norm": max(abs(x["total_grad_norm"] - y["total_grad_norm"]) / (y["total_grad_norm"] or 1) for x, y in steps),
        "first gradient": max(size([a[1][name] - b[1][name]]) / (size([b[1][name]]) or 1) for name in b[1]),
        "weights": size(a[2][name] - b[2][name] for name in b[2]) / (moved or 1),
    }


def unequal(found, reference):
    """Facts that no rounding changes, as sentences."""
    if len(found) != len(reference):
        return [f"{len(found)} steps, the reference {len(reference)}"]
    return [f"step {y['step']}: {key} {x[key]}, the reference {y[key]}" for x, y in zip(found, reference) for key in EXACT
            if (x[key] is None) != (y[key] is None) or (y[key] is not None and not math.isclose(x[key], y[key], rel_tol=1e-12))]


def references(trainer, config, initial, bf16):
    """The reference, and the others from which it may differ as much as we may."""
    if bf16:
        return trainer.train(config, initial, "bf16"), [trainer.train(config, initial, "noisy", seed) for seed in range(1, 7)]
    import trajectory_spread
    others = [trainer.train(config, trajectory_spread.perturbed(initial, seed), "fp32") for seed in range(1, 9)]
    return trainer.train(config, initial, "fp32"), [*others, trainer.train(config, initial, "fp64")]


def compare(harness, seed):
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(ROOT / "tests" / "goldens"))
    import reference_trainer as trainer
    torch = trainer.torch
    torch.set_num_threads(1)
    drawn = random_training(seed)
    bf16 = drawn.config["precision"] == "amp_bf16"
    documents = "generate_doc_lengths" in drawn.config["data"]
    group = f"amp_bf16, {drawn.config['distributed_strategy']}" if bf16 else "fp32"
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"against-olmo-{seed}-"))
    try:
        config = write_files(drawn, seed, folder)
        initial = trainer.initial_weights(config, seed)
        torch.save(initial, folder / "initial.pt")
        found = train_here(harness, config, folder / "initial.pt", folder)
        reference, others = references(trainer, config, initial, bf16)
    except Ended as ended:
        return Result(seed, group, documents, 0, str(ended), [] if ended.code == USAGE_ERROR else [str(ended)], {}, {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    initial = {name: weight.double() for name, weight in initial.items()}
    wrong = unequal(found[0], reference[0])
    apart = [distance(other, reference, initial) for other in others]
    spread = {name: max(floor, *(other[name] for other in apart)) for name, floor in FLOOR.items()}
    return Result(seed, group, documents, len(reference[0]), "", wrong, {} if wrong else distance(found, reference, initial), spread)


def ratios(result):
    return {name: result.distance[name] / result.spread[name] for name in result.distance}


def is_far(result):
    return bool(result.wrong) or not all(ratio <= LIMIT for ratio in ratios(result).values())  # one that is no number is far, too


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table(results):
    quantities = list(FLOOR)
    lines = [row(["arithmetic", "trainings", "steps", *quantities]), row(["---"] * (3 + len(quantities)))]
    for group in sorted({result.group for result in results}):
        held = [result for result in results if result.group == group and result.distance]
        cells = []
        for name in quantities:
            shares = [ratios(result)[name] for result in held]
            cells.append(f"{statistics.median(shares):.2f}, {max(shares):.2f} ({max(result.distance[name] for result in held):.0e})" if shares else "–")
        lines.append(row([group, str(len(held)), str(sum(result.steps for result in held)), *cells]))
    return lines


def report(results, versions, command):
    far = [result for result in results if is_far(result)]
    refused = [result for result in results if result.told and not result.wrong]
    compared = len(results) - len(refused)
    lines = [
        "# Random trainings against OLMo's own trainer", "",
        f"Made by `{command}` on {datetime.date.today()} with {versions}; do not edit.", "",
        f"{compared} random configs were trained by both from the same file, weights and tokens: "
        + ("**none is further from the reference than it may be**." if not far else f"**{len(far)} are further from the reference than they may be**."),
        f"Attention keeps to documents in {sum(result.documents for result in results if result.distance)} of them.",
        "Step, epoch, tokens, learning rate and clipping limit are equal in every step." if not any(result.wrong for result in results) else "", "",
        "A cell has the median and the largest distance between both, as a multiple of how far the reference comes from itself, and the largest",
        f"distance itself. A training is too far at {LIMIT} times. How far the reference comes from itself is the largest of a few runs: in fp32 eight",
        "whose initial weights differ by half an ulp and one in float64; in bf16 six in which each value that is rounded to bf16 is moved before by up to",
        "2^-22 of its size. Losses are in nats; the gradient norm is relative; the first gradient is that of the first step, tensor by tensor (relative",
        "norm of the difference); weights are those after the last step, relative to how far training moved them. The reference counts as at least so",
        "far from itself: " + ", ".join(f"{name} {floor:.0e}" for name, floor in FLOOR.items()) + ".", "", *table(results), ""]
    if far:
        lines += ["## Too far", "", *(f"- seed {result.seed}, {result.group}: " + ("; ".join(result.wrong[:3]) or ", ".join(
            f"{name} {ratio:.1f}" for name, ratio in ratios(result).items() if ratio > LIMIT)) for result in far), ""]
    if refused:
        lines += ["## Refused by the harness", "", *(f"- seed {result.seed}: {result.told}" for result in refused), ""]
    return "\n".join(lines)


def versions_of(harness):
    import importlib.metadata
    names = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("ai2-olmo", "torch", "numpy"))
    build = subprocess.run([harness, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return f"{names} and {build}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 120), metavar=("FIRST", "LAST"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "reports" / "against_olmo.md")
    options = parser.parse_args()
    harness = str(pathlib.Path(options.harness).resolve())
    seeds = range(options.seeds[0], options.seeds[1] + 1)
    # A process each: the reference's functions are set for all of a process.
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        results = []
        for result in pool.map(compare, [harness] * len(seeds), seeds):
            results.append(result)
            told = result.told or "; ".join(result.wrong[:2]) or ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(result).items())
            print(f"{result.seed} {result.group}, {result.steps} steps: {told}", flush=True)
    command = f"scripts/against_olmo.py HARNESS --seeds {seeds[0]} {seeds[-1]}"
    options.output.write_text(report(results, versions_of(harness), command))
    sys.exit(1 if any(map(is_far, results)) else 0)


if __name__ == "__main__":
    main()
