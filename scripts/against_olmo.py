#!/usr/bin/env python3
"""Trains random small models by OLMo's own trainer and by the harness, from the same config file, weights and tokens; makes reports/against_olmo.md.

Needs: pip install 'ai2-olmo[train]==0.6.0' torch==2.11.0 numpy==2.4.6 h5py
Run:   scripts/against_olmo.py HARNESS [--ranks N] [--seeds FIRST LAST] [--jobs N] [--output FILE]

A seed decides a whole config: model, optimizer, schedule, batches, data, precision. Keys are left out at random, so that defaults are compared, too.
Some seeds also decide a second config, which goes on from the last checkpoint of the first.
Counters, learning rates and limits must be equal. Losses, norms, gradients and weights are held to how far the reference comes from itself: in
fp32 when its initial weights differ by half an ulp, and in float64; in bf16 when what it rounds differs before by 2^-22. Exits 1 if a training
is more than LIMIT times that away. Before it is called so, the reference is run MORE times: a step of LionW that turns a sign is rare, and large.

With --ranks both train on N processes, the reference under torch's own DDP or FSDP, and the report is reports/against_olmo_on_ranks.md.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import logging
import math
import multiprocessing
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "goldens"))
import random_trainings  # noqa: E402

LIMIT, MORE = 3, 40
# The reference counts as at least so far from itself: what the rounding of a float or two makes.
FLOOR = {"loss": 2e-6, "z-loss": 1e-7, "gradient norm": 1e-5, "first gradient": 1e-6, "weights": 1e-5, "evaluation": 2e-6}
EXACT = ("step", "epoch", "tokens", "lr", "max_grad_norm")

RANKS = [
    "The reference ran under torch's own DDP or FSDP, on processes joined by Gloo; the harness ran with `--nproc`. The harness computes on ranks what",
    "it computes in one process. The reference has other instances in a micro-batch there: how far that takes it from itself in one process is part of",
    "how far a training may be."]

Result = collections.namedtuple("Result", "seed group documents activation branch steps told wrong distance spread again", defaults=(False,))


def run_here(harness, config, start, run, ranks):
    """Trains, and returns the facts of every step and what the evaluators say after the last one."""
    random_trainings.run_harness(
        [harness, "train", config, start, "--run-dir", run, f"save_folder={run}", "save_interval=1", "threads=1",
         *(["--nproc", ranks] if ranks > 1 else [])])
    with sqlite3.connect(run / "run.db") as database:
        database.row_factory = sqlite3.Row
        steps = [dict(row, total_grad_norm=row["grad_norm"]) for row in database.execute("SELECT * FROM steps ORDER BY step")]
        return steps, {row["name"]: row["value"] for row in database.execute("SELECT name, value FROM metrics WHERE name LIKE 'eval/%'")}


def tensors(checkpoint, group):
    import h5py
    import numpy as np
    import torch

    with h5py.File(checkpoint / "checkpoint.h5") as file:
        return {name: torch.from_numpy(np.asarray(file[group][name])).double() for name in file[group]}


def train_here(harness, seed, drawn, folder, ranks):
    """As reference_trainer.train: steps, first moments after the first step, weights at the end, evaluations. And the file of a branch, if there is
    one."""
    run = folder / "run"
    steps, scores = run_here(harness, folder / "config.yaml", f"load_weights={folder}/initial.pt", run, ranks)
    first = tensors(run / "step1", "optim/exp_avg")
    branch = random_trainings.write_branch(seed, drawn, steps[-1]["step"], steps[-1]["tokens"], folder / "branch.yaml", ranks)
    evaluations = [scores]
    if branch:
        more, scores = run_here(harness, branch, f"load_path={run}/step{steps[-1]['step']}", folder / "branch", ranks)
        if more:
            steps, run, evaluations = steps + more, folder / "branch", [*evaluations, scores]
    return (steps, first, tensors(run / "latest", "model"), evaluations), branch


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
        "evaluation": max(abs(x[name] - y[name]) for x, y in zip(a[3], b[3]) for name in y if name.endswith("/CrossEntropyLoss")),
    }


def unequal(found, reference):
    """Facts that no rounding changes, as sentences."""
    steps, expected = found[0], reference[0]
    if len(steps) != len(expected):
        return [f"{len(steps)} steps, the reference {len(expected)}"]
    names, expected_names = ([sorted(scores) for scores in training[3]] for training in (found, reference))
    if names != expected_names:
        return [f"evaluations {names}, the reference {expected_names}"]
    return [f"step {y['step']}: {key} {x[key]}, the reference {y[key]}" for x, y in zip(steps, expected) for key in EXACT
            if (x[key] is None) != (y[key] is None) or (y[key] is not None and not math.isclose(x[key], y[key], rel_tol=1e-12))]


def moved(train, initial, bf16, seeds):
    """Trainings by the reference from which it may differ as much as we may."""
    if bf16:
        return [train(initial, "noisy", seed) for seed in seeds]
    import trajectory_spread
    return [train(trajectory_spread.perturbed(initial, seed), "fp32") for seed in seeds]


def references(train, initial, bf16):
    """The reference, and the others."""
    if bf16:
        return train(initial, "bf16"), moved(train, initial, bf16, range(1, 7))
    others = moved(train, initial, bf16, range(1, 9))
    return train(initial, "fp32"), [*others, train(initial, "fp64")]


def judged(result, reference, others, initial):
    """The result with how far the others are from the reference."""
    apart = [distance(other, reference, initial) for other in others]
    return result._replace(spread={name: max(floor, *(other[name] for other in apart)) for name, floor in FLOOR.items()})


@contextlib.contextmanager
def trainer_on(ranks, trainer, folder):
    """The function that trains by the reference."""
    if ranks == 1:
        yield trainer.train
        return
    with trainer.Ranks(ranks, folder / "store") as team:
        yield team.train


def compare(harness, seed, ranks):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)  # the trainer tells that it finds no random state of a GPU
    import reference_trainer as trainer
    torch = trainer.torch
    torch.set_num_threads(1)
    drawn = random_trainings.random_training(seed, ranks)
    drawn.config.update(random_trainings.random_evaluators(seed, drawn.config, ranks))
    bf16 = drawn.config["precision"] == "amp_bf16"
    documents = "generate_doc_lengths" in drawn.config["data"]
    activation = drawn.config["model"].get("activation_type", "swiglu")
    group = random_trainings.group_of(drawn.config)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"against-olmo-{seed}-"))
    try:
        config = random_trainings.write_files(drawn, seed, folder)
        initial = trainer.initial_weights(config, seed)
        torch.save(initial, folder / "initial.pt")
        found, branch = train_here(harness, seed, drawn, folder, ranks)
        exact = {name: weight.double() for name, weight in initial.items()}
        with trainer_on(ranks, trainer, folder) as by_reference:

            def train(weights, arithmetic, noise=0):
                return by_reference(config, weights, arithmetic, noise, branch)

            reference, others = references(train, initial, bf16)
            if ranks > 1:  # in one process a micro-batch has other instances, as ours has on ranks
                others.append(trainer.train(config, initial, "bf16" if bf16 else "fp32", branch_file=branch))
            wrong = unequal(found, reference)
            result = Result(seed, group, documents, activation, bool(branch), len(reference[0]), "", wrong,
                            {} if wrong else distance(found, reference, exact), {})
            result = judged(result, reference, others, exact)
            if wrong or not is_far(result):
                return result
            more = moved(train, initial, bf16, range(len(others) + 1, len(others) + 1 + MORE))
            return judged(result, reference, others + more, exact)._replace(again=True)
    except random_trainings.Ended as ended:
        told = str(ended).replace(f"{folder}/", "")
        return Result(seed, group, documents, activation, False, 0, told, [] if ended.code == random_trainings.USAGE_ERROR else [told], {}, {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ratios(result):
    return {name: result.distance[name] / result.spread[name] for name in result.distance}


def is_far(result):
    return bool(result.wrong) or not all(ratio <= LIMIT for ratio in ratios(result).values())  # one that is no number is far, too


def row(cells):
    return "| " + " | ".join(cells) + " |"


def cell(held, name):
    """Of a table: the median and the largest ratio, and the largest distance."""
    shares = [ratios(result)[name] for result in held]
    return f"{statistics.median(shares):.2f}, {max(shares):.2f} ({max(result.distance[name] for result in held):.0e})" if shares else "–"


def table(results):
    quantities = list(FLOOR)
    lines = [row(["arithmetic", "trainings", "steps", *quantities]), row(["---"] * (3 + len(quantities)))]
    for group in sorted({result.group for result in results}):
        held = [result for result in results if result.group == group and result.distance]
        lines.append(row([group, str(len(held)), str(sum(result.steps for result in held)), *(cell(held, name) for name in quantities)]))
    return lines


def again(results):
    """What is to be said of trainings for which a few runs of the reference were not enough."""
    seeds = [str(result.seed) for result in results if result.again]
    return [f"A training that is too far by these few runs is judged by {MORE} more (seed {', '.join(seeds)})."] if seeds else []


def report(results, versions, command, ranks):
    far = [result for result in results if is_far(result)]
    refused = [result for result in results if result.told and not result.wrong]
    compared = len(results) - len(refused)
    lines = [
        "# Random trainings against OLMo's own trainer" + (f" on {ranks} ranks" if ranks > 1 else ""), "",
        f"Made by `{command}` on {datetime.date.today()} with {versions}; do not edit.", "",
        f"{compared} random configs were trained by both from the same file, weights and tokens: "
        + ("**none is further from the reference than it may be**." if not far else f"**{len(far)} are further from the reference than they may be**."),
        *(RANKS if ranks > 1 else []),
        f"Attention keeps to documents in {sum(result.documents for result in results if result.distance)} of them; the MLP has "
        + ", ".join(f"{name} in {sum(result.activation == name for result in results if result.distance)}" for name in ("gelu", "relu")) + ".",
        f"{sum(result.branch for result in results if result.distance)} go on from the last checkpoint with another config (`load_path`): another batch size,",
        "schedule or order of the data, `reset_optimizer_state`, `reset_trainer_state`, `restore_dataloader`, `epoch`, `fast_forward_batches`.",
        "After each last step the evaluators of both score the same token files" + (
            "." if ranks > 1 else ", of which `subset_num_batches` may choose some."),
        "Step, epoch, tokens, learning rate and clipping limit are equal in every step." if not any(result.wrong for result in results) else "", "",
        "A cell has the median and the largest distance between both, as a multiple of how far the reference comes from itself, and the largest",
        f"distance itself. A training is too far at {LIMIT} times. How far the reference comes from itself is the largest of a few runs: in fp32 eight",
        "whose initial weights differ by half an ulp and one in float64; in bf16 six in which each value that is rounded to bf16 is moved before by up to",
        "2^-22 of its size. Losses are in nats; the gradient norm is relative; the first gradient is that of the first step, tensor by tensor (relative",
        "norm of the difference); weights are those after the last step, relative to how far training moved them; the evaluation is in nats. The reference",
        "counts as at least so far from itself: " + ", ".join(f"{name} {floor:.0e}" for name, floor in FLOOR.items()) + ".", *again(results), "", *table(results), ""]
    if far:
        lines += ["## Too far", "", *(f"- seed {result.seed}, {result.group}: " + ("; ".join(result.wrong[:3]) or ", ".join(
            f"{name} {ratio:.1f}" for name, ratio in ratios(result).items() if ratio > LIMIT)) for result in far), ""]
    if refused:
        lines += ["## Refused by the harness", "", *(f"- seed {result.seed}: {result.told}" for result in refused), ""]
    return "\n".join(lines)


def versions_of(harness, reference="ai2-olmo"):
    import importlib.metadata
    names = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in (reference, "torch", "numpy"))
    build = subprocess.run([harness, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return f"{names} and {build}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 120), metavar=("FIRST", "LAST"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--ranks", type=int, default=1, help="processes that train together")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    on_ranks = options.ranks > 1
    output = options.output or ROOT / "reports" / ("against_olmo_on_ranks.md" if on_ranks else "against_olmo.md")
    harness = str(pathlib.Path(options.harness).resolve())
    seeds = range(options.seeds[0], options.seeds[1] + 1)
    # A process each: the reference's functions are set for all of a process.
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        results = []
        for result in pool.map(compare, [harness] * len(seeds), seeds, [options.ranks] * len(seeds)):
            results.append(result)
            told = result.told or "; ".join(result.wrong[:2]) or ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(result).items())
            print(f"{result.seed} {result.group}, {result.steps} steps: {told}", flush=True)
    command = f"scripts/against_olmo.py HARNESS {f'--ranks {options.ranks} ' if on_ranks else ''}--seeds {seeds[0]} {seeds[-1]}"
    output.write_text(report(results, versions_of(harness), command, options.ranks))
    sys.exit(1 if any(map(is_far, results)) else 0)


if __name__ == "__main__":
    main()
