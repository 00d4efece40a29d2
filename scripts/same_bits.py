#!/usr/bin/env python3
"""Trains random small models in many ways and compares every bit of them; makes reports/same_bits.md.

Needs: pip install numpy==2.4.6 PyYAML
Run:   scripts/same_bits.py HARNESS [--seeds FIRST LAST] [--ways N] [--jobs N] [--output reports/same_bits.md]

A seed decides a training, as for scripts/against_olmo.py, and the ways to do it: instruction set, threads, ranks and how they share the model,
what is computed again, where it is stopped and with how many ranks it goes on. All must end with the chain hash (batches, losses and norms of
every step) and the state (weights and moments) of one process with one thread and plain kernels. An audit of that training by the widest
kernels must find every bit. Some seeds also decide a second config, which goes on from the last checkpoint of the first: some of their ways do
that. Exits 1 if anything differs.
"""
import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "goldens"))
import random_trainings  # noqa: E402
from random_trainings import USAGE_ERROR, Ended, run_harness  # noqa: E402

STOPPED = 75  # the harness's exit code
RECOMPUTED = ("whole_layer", "one_in_two", "one_in_three", "one_in_four", "two_in_three", "three_in_four", "fine_grained")
SHARDING = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")

# `ranks`: before and after the stop; `stop`: after so many steps, or 0; `shared`: how ranks share the model.
Way = collections.namedtuple("Way", "isa threads recomputed shared ranks stop")
# `start`: words of the command line; `begins`: what a report calls it; `trained`: of one process with one thread and plain kernels.
Training = collections.namedtuple("Training", "file start begins trained")
Trained = collections.namedtuple("Trained", "last_step steps tokens chain_hash state")
Result = collections.namedtuple("Result", "seed group ways wrong refused")
PLAIN = Way("plain", 1, "", "", (1, 1), 0)


def random_way(draw, config, sets, steps):
    """Ranks may share the model as the config's precision allows: where bf16 rounds depends on the strategy."""
    ranks = draw.choice([(1, 1), (1, 1), (2, 2), (1, 3), (2, 4), (3, 1), (4, 2), (3, 3)])
    strategies = ["ddp", *SHARDING]
    if config["precision"] != "fp32":
        strategies = ["ddp"] if config["distributed_strategy"] == "ddp" else list(SHARDING)
    if any(count % 2 for count in ranks):
        strategies = [name for name in strategies if "HYBRID" not in name]
    shared = draw.choice(strategies) if ranks != (1, 1) else ""
    stop = draw.randrange(1, steps) if steps > 1 and (ranks[0] != ranks[1] or draw.random() < 0.5) else 0
    isa = draw.choice(sets[1:] * 4 + sets[:1])  # plain kernels take thirty times as long
    return Way(isa, draw.randrange(1, 4), draw.choice(["", "", *RECOMPUTED]), shared, ranks if stop else (ranks[0],) * 2, stop)


def words_of(way):
    words = [f"isa={way.isa}", f"threads={way.threads}"]
    if way.recomputed:
        words.append(f"activation_checkpointing={way.recomputed}")
    if way.shared == "ddp":
        words.append("distributed_strategy=ddp")
    elif way.shared:
        words += ["distributed_strategy=fsdp", f"fsdp.sharding_strategy={way.shared}"]
        if "HYBRID" in way.shared:
            words.append("fsdp.hybrid_sharding_num_model_replicas=2")
    return words


def train(harness, config, start, way, run):
    """Returns the record of the finished run; None: it had no step to train."""
    words = [harness, "train", config, *start, "--run-dir", run, f"save_folder={run}", "save_interval=1000", *words_of(way)]
    for stage, ranks in enumerate(way.ranks if way.stop else way.ranks[:1]):
        more = ["--nproc", ranks] if ranks > 1 else []
        stops = bool(way.stop) and stage == 0
        more += [f"stop_after={way.stop}"] if stops else ["--resume", "latest"] if stage else []
        run_harness(words + more, STOPPED if stops else 0)
    with sqlite3.connect(f"file:{run}/run.db?mode=ro", uri=True) as database:
        steps = database.execute("SELECT step, tokens, chain_hash FROM surviving_steps ORDER BY step").fetchall()
        step, tokens, chain = steps[-1] if steps else (None,) * 3
        tensors = database.execute("SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = ? ORDER BY part, name", (step,)).fetchall()
    database.close()
    return Trained(step, len(steps), tokens, chain, hashlib.sha256(repr(tensors).encode()).hexdigest()) if steps else None


def audit(harness, run, trained, isa):
    first = trained.last_step - trained.steps + 1
    run_harness([harness, "audit", run, "--steps", f"{first}..{trained.last_step}", f"isa={isa}", "threads=2"], 0)


def trainings_of(harness, sets, seed, drawn, folder, wrong):
    """The drawn one and, of some seeds, one that goes on from it, each done by plain kernels and audited."""
    file = random_trainings.write_files(drawn, seed, folder)
    first = train(harness, file, [], PLAIN, folder / "plain")
    trainings = [Training(file, [], "the weights", first)]
    if file := random_trainings.write_branch(seed, drawn, first.last_step, first.tokens, folder / "branch.yaml"):
        start = [f"load_path={folder}/plain/step{first.last_step}"]
        if branch := train(harness, file, start, PLAIN, folder / "branch"):
            trainings.append(Training(file, start, "a checkpoint (`load_path`)", branch))
    for training, run in zip(trainings, ("plain", "branch")):
        try:
            audit(harness, folder / run, training.trained, sets[-1])
        except Ended as ended:
            wrong.append(f"audit of the one from {training.begins}, isa={sets[-1]}: {last_line(ended)}")
    return trainings


def told(way):
    return " ".join([*words_of(way), f"ranks {way.ranks[0]}", *([f"stopped after {way.stop}, then {way.ranks[1]}"] if way.stop else [])])


def last_line(ended):
    return f"exit {ended.code}: " + (ended.told.splitlines() or [""])[-1]


def compare(harness, sets, seed, count):
    drawn = random_trainings.random_training(seed)
    config, draw = drawn.config, random.Random(f"ways of {seed}")
    group = random_trainings.group_of(config)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"same-bits-{seed}-"))
    ways, wrong, refused = [], [], []
    try:
        trainings = trainings_of(harness, sets, seed, drawn, folder, wrong)
        for index in range(count):
            training = draw.choice(trainings)
            way = random_way(draw, config, sets, training.trained.steps)
            name = f"from {training.begins}: {told(way)}"
            try:
                found = train(harness, training.file, training.start, way, folder / f"way{index}")
            except Ended as ended:
                (refused if ended.code == USAGE_ERROR else wrong).append(f"{name}: {last_line(ended)}")
                continue
            ways.append((training, way))
            if found != training.trained:
                apart = [field for field in Trained._fields if getattr(found, field, None) != getattr(training.trained, field)]
                wrong.append(f"{name}: another {' and '.join(apart)}")
    except Ended as ended:
        (refused if ended.code == USAGE_ERROR else wrong).append(last_line(ended))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(seed, group, ways, wrong, refused)


def sets_of(harness):
    """The instruction sets of this machine, from plain to the widest."""
    ended = subprocess.run([harness, "doctor", "--json"], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)["processor"]["isas"]


def counted(results):
    """Of all ways, how many had each choice."""
    ways = [way for result in results for _, way in result.ways]
    begins = collections.Counter(training.begins for result in results for training, _ in result.ways)
    yield "| begins with | " + ", ".join(f"{value} ({begins[value]})" for value in sorted(begins, reverse=True)) + " |"
    choices = {
        "kernels": lambda way: way.isa, "threads": lambda way: str(way.threads), "computed again": lambda way: way.recomputed or "nothing",
        "ranks share the model by": lambda way: way.shared or "one process", "ranks": lambda way: str(way.ranks[0]),
        "stopped and resumed": lambda way: "no" if not way.stop else f"yes, {'other' if way.ranks[0] != way.ranks[1] else 'as many'} ranks",
    }
    for name, choice in choices.items():
        found = collections.Counter(map(choice, ways))
        yield f"| {name} | " + ", ".join(f"{value} ({found[value]})" for value in sorted(found)) + " |"


def report(results, version, command):
    wrong = [f"- seed {result.seed}, {result.group}: {sentence}" for result in results for sentence in result.wrong]
    refused = [f"- seed {result.seed}, {result.group}: {sentence}" for result in results for sentence in result.refused]
    ways = sum(len(result.ways) for result in results)
    groups = collections.Counter(result.group for result in results if result.ways)
    lines = [
        "# Random trainings, each in several ways", "",
        f"Made by `{command}` on {datetime.date.today()} with {version}; do not edit.", "",
        f"{sum(groups.values())} random trainings ({', '.join(f'{name}: {groups[name]}' for name in sorted(groups))}), which `scripts/against_olmo.py` draws, too, were done once by",
        f"one process with one thread and plain kernels, audited, and done in {ways} other ways: "
        + ("**every one ends with the same bits**." if not wrong else f"**{len(wrong)} differ or fail**."),
        "Compared are the steps, the chain hash (batches, losses and norms of every step) and all weights and moments at the end.", "",
        "| chosen at random | ways with it |", "|---|---|", *counted(results), ""]
    lines += ["## Not equal", "", *wrong, ""] if wrong else []
    lines += ["## Refused by the harness", "", *refused, ""] if refused else []
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 120), metavar=("FIRST", "LAST"))
    parser.add_argument("--ways", type=int, default=4, help="beside the first one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "reports" / "same_bits.md")
    options = parser.parse_args()
    harness = str(pathlib.Path(options.harness).resolve())
    seeds, sets, results = range(options.seeds[0], options.seeds[1] + 1), sets_of(harness), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda seed: compare(harness, sets, seed, options.ways), seeds):
            results.append(result)
            print(f"{result.seed} {result.group}, {len(result.ways)} ways: " + ("; ".join(result.wrong + result.refused) or "equal"), flush=True)
    version = subprocess.run([harness, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    command = f"scripts/same_bits.py HARNESS --seeds {seeds[0]} {seeds[-1]} --ways {options.ways}"
    options.output.write_text(report(results, version, command))
    sys.exit(1 if any(result.wrong for result in results) else 0)


if __name__ == "__main__":
    main()
