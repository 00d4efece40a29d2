#!/usr/bin/env python3
"""Times training steps of olmo-harness on several ranks of one machine against one process with as many threads.

Run:   python3 bench/train_ranks.py --binary build/release/olmo-harness --out bench/results/train_ranks.md

Shapes and configs are those of trainings.py, in micro-batches of which each rank has one. Each round starts all rows of a
precision one after the other, each as new processes; shared machines drift, so the ratio of a round counts and not its
absolute figures. Every row must end with the chain hash of the one process, else the script stops. The first step is left
out of tokens/s. "processor" is the time that all processes had of the processors, start and end included, by that of the
one process: what ranks do besides the training shows there also where other processes slow the machine down. Phases are
those of the record, of a rank and a step, the first step included. Peak memory is the kernel's of each rank (VmHWM); the
plan is that of `train --dry-run --world-size`. "others" is the share of the processors that other processes took
meanwhile: repeat the run if it is large.
"""

import argparse
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

from trainings import (PRECISIONS, SHAPES, STEPS, make_tokens, measure_ours, our_config, plan_of, processor, publish,
                       spread)

PHASES = ["compute", "gather", "exchange", "data", "save", "wait"]
STRATEGIES = {
    "ddp": {"distributed_strategy": "ddp"},
    "FULL_SHARD": {"distributed_strategy": "fsdp", "fsdp": {"precision": "mixed", "sharding_strategy": "FULL_SHARD"}},
    "SHARD_GRAD_OP": {"distributed_strategy": "fsdp", "fsdp": {"precision": "mixed", "sharding_strategy": "SHARD_GRAD_OP"}},
}
# The strategy decides which kind of bf16 a config means.
ROWS = {"fp32": ["ddp", "FULL_SHARD", "SHARD_GRAD_OP"], "mixed": ["FULL_SHARD", "SHARD_GRAD_OP"], "autocast": ["ddp"]}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the olmo-harness to measure")
    parser.add_argument("--shapes", default="T,S,M")
    parser.add_argument("--precisions", default="fp32,mixed,autocast")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="steps of a training (default: 8, 4, 3 at T, S, M)")
    parser.add_argument("--tokenizer", default="tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    parser.add_argument("--out", type=pathlib.Path, help="Markdown file to write; the table goes to stdout in any case")
    return parser.parse_args()


class Peaks:
    """The highest memory of each process that another one has started, in MiB by process."""

    def __init__(self):
        self.mib = {}

    def look(self, parent):
        for children in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                for process in children.read_text().split():
                    status = pathlib.Path(f"/proc/{process}/status").read_text()
                    if peak := re.search(r"VmHWM:\s*(\d+) kB", status):
                        self.mib[int(process)] = int(peak.group(1)) / 1024
            except OSError:  # it has ended meanwhile
                continue


def config_of(arguments, shape, token_file, precision, strategy, ranks):
    settings = PRECISIONS[precision] | STRATEGIES[strategy] | {
        "device_train_microbatch_size": SHAPES[shape]["batch"] // arguments.ranks,
        "threads": arguments.threads * arguments.ranks // ranks}
    return our_config(arguments, shape, token_file, arguments.steps or STEPS[shape], settings)


def measure_with_memory(arguments, config, ranks, *options):
    """As measure_ours, with the peak of each rank, and what `train --dry-run` with `options` plans, in MiB."""
    peaks = Peaks()
    result = measure_ours(arguments, config, ranks, peaks.look)
    result["peaks"] = [peaks.mib.get(row["pid"], result["peak_mib"]) for row in result["ranks"]]
    result["plan"] = plan_of(arguments, config, *options)["memory_bytes"]["total"] / 2**20
    return result


def is_far(peak, plan):
    """Whether a peak is further from its plan than 3 % and 0.2 GiB."""
    return abs(peak - plan) > 0.03 * plan + 204.8


def measure(arguments, shape, token_file, precision, strategy, ranks):
    config = config_of(arguments, shape, token_file, precision, strategy, ranks)
    return measure_with_memory(arguments, config, ranks, "--world-size", str(ranks))


def measure_round(arguments, shape, token_file, precision):
    """One process, and then the ranks under each strategy."""
    strategies = [each for each in ROWS[precision] if each in arguments.strategies.split(",")]
    if not strategies:
        return {}
    results = {"one process": measure(arguments, shape, token_file, precision, strategies[0], 1)}
    for strategy in strategies:
        results[strategy] = measure(arguments, shape, token_file, precision, strategy, arguments.ranks)
        if results[strategy]["chain"] != results["one process"]["chain"]:
            sys.exit(f"{shape} {precision} {strategy}: the chain of {arguments.ranks} ranks differs from that of one process")
    print(f"{shape} {precision}: " + ", ".join(
        f"{name} {statistics.median(one['seconds'][1:]):.3f} s/step" for name, one in results.items()), file=sys.stderr)
    return results


def table_line(shape, precision, name, rounds):
    tokens = SHAPES[shape]["batch"] * SHAPES[shape]["length"]
    own, alone = [one[name] for one in rounds], [one["one process"] for one in rounds]
    rates = [tokens / seconds for one in own for seconds in one["seconds"][1:]]
    ratios = [statistics.median(base["seconds"][1:]) / statistics.median(one["seconds"][1:])
              for one, base in zip(own, alone)]
    busy = [one["busy"] / base["busy"] for one, base in zip(own, alone)]
    phases = [statistics.mean(1000 * row[f"{phase}_seconds"] / row["steps"] for one in own for row in one["ranks"])
              for phase in PHASES]
    peaks = [max(peaks) for peaks in zip(*(one["peaks"] for one in own))]
    others = max(one["others"] for one in own)
    cells = [shape, precision, name, spread(rates), spread(ratios, 2), spread(busy, 2), *(f"{each:.0f}" for each in phases),
             ", ".join(f"{peak:.0f}" for peak in peaks), f"{own[0]['plan']:.0f}", f"{100 * others:.0f} %"]
    return f"| {' | '.join(cells)} |"


def report(arguments, lines):
    cells = ["shape", "precision", "strategy", "tokens/s", "of one process, per round", "processor, of one process",
             *(f"{phase} ms" for phase in PHASES), "peak MiB by rank", "plan MiB", "others"]
    return "\n".join([
        "# Training steps on ranks of one machine", "",
        f"`python3 bench/train_ranks.py --shapes {arguments.shapes} --precisions {arguments.precisions} --strategies "
        f"{arguments.strategies} --ranks {arguments.ranks} --threads {arguments.threads} --rounds {arguments.rounds}` on "
        f"{processor()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}.",
        f"{arguments.ranks} ranks of {arguments.threads} threads each (`--nproc {arguments.ranks}`) against one process of "
        f"{arguments.ranks * arguments.threads}. Columns of three: min / median / max.", "",
        f"| {' | '.join(cells)} |", "|" + " --- |" * len(cells), *lines, ""])


def main():
    arguments = parse_arguments()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in arguments.shapes.split(","):
            token_file = make_tokens(folder, shape)
            for precision in arguments.precisions.split(","):
                rounds = [measure_round(arguments, shape, token_file, precision) for _ in range(arguments.rounds)]
                lines += [table_line(shape, precision, name, rounds) for name in rounds[0]]
    text = report(arguments, lines)
    publish(text, arguments.out)


if __name__ == "__main__":
    main()
