#!/usr/bin/env python3
"""Scores every task that OLMo's trainer evaluates by its own classes and by the harness, with random small models; makes reports/tasks_against_olmo.md.

Needs: pip install 'ai2-olmo[train]==0.6.0' torch==2.11.0 numpy==2.4.6, and `olmo-harness data fetch`
Run:   scripts/tasks_against_olmo.py HARNESS [--seeds FIRST LAST] [--jobs N] [--output reports/tasks_against_olmo.md]

A seed decides a model and its tokenizer, and takes its share of the labels; together the seeds take them all. Both score the first
continuations of each task within a training, from the same config file and weights. Every continuation's score, the right option of every
instance and the task's metric are compared. Exits 1 if a label differs.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import itertools
import logging
import math
import multiprocessing
import os
import pathlib
import random
import sqlite3
import sys
import tempfile
import types
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "goldens"))
sys.path.insert(0, str(ROOT / "scripts"))
import random_trainings  # noqa: E402
from against_olmo import row, versions_of  # noqa: E402

# A score's distance, relative to it or to LEAST. Where logits are of the size of 100, both are 2e-5 from float64, on either side of it.
FARTHEST, LEAST = 1e-4, 0.1
LINES, ROWS = 500, 50  # of a file of requests, of a table: the reference would encode all of them

TOKENIZERS = {"tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json": 50279, "tokenizers/allenai_eleuther-ai-gpt-neox-20b-pii-special.json": 0}

Result = collections.namedtuple("Result", "label metric instances continuations distance wrong")


def random_config(seed, labels, folder):
    """Its one step changes no weight: the harness evaluates after a step."""
    draw = random_trainings.Draw(seed)
    tokenizer = draw.of(*TOKENIZERS)
    heads = draw.of(2, 4)
    model = dict(
        d_model=32, n_heads=heads, n_kv_heads=draw.of(1, heads), n_layers=draw.of(1, 2), mlp_ratio=2, max_sequence_length=draw.of(128, 1024, 2048, 4096),
        vocab_size=50280, embedding_size=50304, rope=True, attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0, include_bias=False,
        layer_norm_type=draw.of("default", "rms"), weight_tying=draw.of(True, False), eos_token_id=TOKENIZERS[tokenizer], pad_token_id=1,
        init_device="cpu", init_fn="normal", init_std=draw.of(0.1, 0.3, 1.0))
    evaluators = [dict(label=label, type="downstream", device_eval_batch_size=draw.of(1, 2), subset_num_batches=draw.of(12, 16)) for label in labels]
    return dict(
        run_name="tasks", seed=seed, save_folder=str(folder / "unused"), precision="fp32", model=model, tokenizer=dict(identifier=tokenizer),
        optimizer=dict(name="adamw", learning_rate=1e-20), scheduler=dict(name="cosine_with_warmup", t_warmup=1), max_duration=1,
        global_train_batch_size=1, device_train_microbatch_size=1, device_eval_batch_size=2, save_interval=1000,
        data=dict(paths=[str(folder / "tokens.npy")], memmap_dtype="uint16", num_workers=0), evaluators=evaluators)


def write_files(seed, labels, folder):
    import numpy as np
    import reference_trainer
    import torch

    config = random_config(seed, labels, folder)
    np.random.default_rng(seed).integers(0, 50000, 2 * config["model"]["max_sequence_length"]).astype(np.uint16).tofile(folder / "tokens.npy")
    random_trainings.write_config(config, folder / "config.yaml")
    weights = reference_trainer.initial_weights(folder / "config.yaml", seed)
    torch.save(weights, folder / "initial.pt")
    return weights


def score_here(harness, folder):
    """Metrics by name, and by task the rows of continuations."""
    run = folder / "run"
    random_trainings.run_harness(
        [harness, "train", folder / "config.yaml", f"load_weights={folder}/initial.pt", "--run-dir", run, f"save_folder={run}", "threads=1"])
    with sqlite3.connect(run / "run.db") as database:
        database.row_factory = sqlite3.Row
        metrics = dict(database.execute("SELECT name, value FROM metrics WHERE name LIKE 'eval/%' AND step = 1").fetchall())
        rows = collections.defaultdict(list)
        for each in database.execute("SELECT * FROM evaluation_options NATURAL JOIN evaluations WHERE step = 1 ORDER BY task, doc_id, cont_id"):
            rows[each["task"]].append(each)
        return metrics, rows


def beginning_of(data):
    """Enough of a table for what is scored."""
    return data.select(range(min(ROWS, len(data))))


def read_beginnings():
    """Lets the reference read and encode the beginnings of large data sets only."""
    import gzip

    import olmo.eval.downstream as downstream
    import olmo.util

    olmo.util.gzip = types.SimpleNamespace(open=lambda *file: contextlib.nullcontext(itertools.islice(gzip.open(*file), LINES)))
    downstream_load = downstream.load_hf_dataset
    downstream.load_hf_dataset = lambda *names: beginning_of(downstream_load(*names))


class Whole:
    """OLMo judges the last instance by the options that it has; the harness does not count it."""

    def __init__(self, evaluator):
        self.metric = evaluator.eval_metric
        self.options = collections.Counter(sample["doc_id"] for sample in evaluator.eval_loader.dataset.samples)

    def leave_out_the_rest(self):
        seen = collections.Counter(int(state[0]) for state in self.metric.loglikelihoods)
        self.metric.loglikelihoods = [state for state in self.metric.loglikelihoods if seen[int(state[0])] == self.options[int(state[0])]]


def score_by_reference(weights, folder):
    """By label: the metric's name, its value, and the states of OLMo's metric: (doc_id, cont_id, score), (doc_id, cont_id, label)."""
    import olmo.train
    import reference_trainer
    from olmo.eval import build_evaluator
    from olmo.tokenizer import Tokenizer

    olmo.train.barrier = lambda: None
    read_beginnings()
    reference_trainer.compute_as("fp32")
    trainer = reference_trainer.trainer_of(folder / "config.yaml", weights, "fp32")
    tokenizer = Tokenizer.from_train_config(trainer.cfg)
    scores = {}
    for config in trainer.cfg.evaluators:
        with contextlib.redirect_stderr(open(os.devnull, "w")):
            evaluator = build_evaluator(trainer.cfg, config, tokenizer, trainer.device)
        trainer.evaluators = [evaluator]
        whole = Whole(evaluator)
        compute = evaluator.eval_metric.compute
        evaluator.eval_metric.compute = lambda: (whole.leave_out_the_rest(), compute())[1]
        (name, value), = trainer.eval().items()
        metric = evaluator.eval_metric
        labels = {(int(doc), int(cont)): int(label) for doc, cont, label in metric.labels}
        scores[config.label] = (name, float(value), metric.metric_type, [
            (int(doc), int(cont), float(score), labels[int(doc), int(cont)]) for doc, cont, score in metric.loglikelihoods])
    return scores


def score_of(kind, each):
    """As OLMo's ICLMetric makes it of a continuation's log-likelihood."""
    if kind in ("acc", "f1"):
        return each["logprob"]
    if kind in ("len_norm", "ce_loss"):
        return each["logprob"] / each["cont_chars"] * (-1 if kind == "ce_loss" else 1)
    return -each["logprob"] / each["cont_bytes"] * math.log2(math.e)


def differences(label, reference, metrics, rows):
    name, value, kind, states = reference
    told = []
    here = [(each["doc_id"], each["cont_id"], each["label"]) for each in rows]
    there = sorted((doc, cont, right) for doc, cont, score, right in states)
    if here != there:
        unequal = [pair for pair in itertools.zip_longest(here, there) if pair[0] != pair[1]]
        told.append(f"{len(here)} continuations, the reference has {len(there)}; the first that differ: {unequal[0]}")
        return Result(label, kind, 0, 0, math.inf, told)
    distance = max(abs(score_of(kind, each) - state[2]) / max(abs(state[2]), LEAST) for each, state in zip(rows, sorted(states)))
    if distance > FARTHEST:
        told.append(f"a score differs by {distance:.1e}")
    if name not in metrics:
        told.append(f"has no metric {name}")
    elif abs(metrics[name] - value) > FARTHEST * max(abs(value), LEAST):
        told.append(f"{name} is {metrics[name]:.6g}, by the reference {value:.6g}")
    return Result(label, kind, len({doc for doc, _, _ in here}), len(here), distance, told)


def compare(harness, seed, labels):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        weights = write_files(seed, labels, folder)
        metrics, rows = score_here(harness, folder)
        return [differences(label, reference, metrics, rows[label]) for label, reference in score_by_reference(weights, folder).items()]


def dealt_out(seeds):
    """The labels of each seed."""
    from olmo.eval.downstream import label_to_task_map

    labels = sorted(label_to_task_map)
    random.Random(0).shuffle(labels)
    return [labels[place::len(seeds)] for place in range(len(seeds))]


def form_of(label):
    for form in ("mc_5shot", "rc_5shot", "rc_0shot", "rc_var", "var", "10way"):
        if form in label:
            return form
    return "MMLU without examples" if label.startswith("mmlu") else "OLMo's own classes"


def table(results):
    groups = collections.defaultdict(list)
    for result in results:
        groups[form_of(result.label), result.metric].append(result)
    lines = [row(("form", "metric", "labels", "instances", "continuations", "largest distance of a score", "differ")), row(["---"] * 7)]
    for (form, metric), group in sorted(groups.items()):
        counts = (len(group), sum(result.instances for result in group), sum(result.continuations for result in group))
        lines.append(row((form, metric, *map(str, counts), f"{max(result.distance for result in group):.0e}",
                          str(sum(bool(result.wrong) for result in group)))))
    return lines


def report(results, versions, command, models):
    wrong = [result for result in results if result.wrong]
    lines = [
        "# Tasks within training against OLMo's own classes", "",
        f"Made by `{command}` on {datetime.date.today()} with {versions}; do not edit.", "",
        f"All {len(results)} labels of OLMo's evaluators, among {models} random small models with either of OLMo's tokenizers: "
        + ("**every score and every metric is the reference's**." if not wrong else f"**{len(wrong)} differ**."), "",
        "Both score the first continuations of a task within a training (`evaluators`, `type: downstream`, `subset_num_batches`), in fp32. The right option of",
        f"each instance is equal. A score is what OLMo's metric makes of a continuation's log-likelihood; its distance is relative, to at least {LEAST}. A label differs where",
        f"a score or the metric is further than {FARTHEST:.0e} from the reference, or where instances, right options or names differ. OLMo judges the last",
        "instance by the options that it has, and the harness does not count it ([docs/evaluate.md](../docs/evaluate.md)): it is left out here.", "",
        *table(results), ""]
    if wrong:
        lines += ["## What differs", "", *(f"- `{result.label}`: " + "; ".join(result.wrong) for result in wrong), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 16), metavar=("FIRST", "LAST"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "reports" / "tasks_against_olmo.md")
    options = parser.parse_args()
    harness = str(pathlib.Path(options.harness).resolve())
    seeds = range(options.seeds[0], options.seeds[1] + 1)
    # A process each: the reference's functions are set for all of a process.
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        results = []
        for seed, group in zip(seeds, pool.map(compare, [harness] * len(seeds), seeds, dealt_out(seeds))):
            results += group
            wrong = [f"{result.label}: {'; '.join(result.wrong)}" for result in group if result.wrong]
            print(f"seed {seed}: {len(group)} labels, " + ("; ".join(wrong) or "all as the reference"), flush=True)
    command = f"scripts/tasks_against_olmo.py HARNESS --seeds {seeds[0]} {seeds[-1]}"
    options.output.write_text(report(results, versions_of(harness), command, len(seeds)))
    sys.exit(1 if any(result.wrong for result in results) else 0)


if __name__ == "__main__":
    main()
