#!/usr/bin/env python3
"""Compares the peak memory of trainings with what `train --dry-run` plans, in every mode of activation_checkpointing and
for several micro-batches, and times what recomputation costs.

Run:   python3 bench/train_memory.py --binary build/release/olmo-harness

Shapes and configs are those of trainings.py. Each row is a training in a process of its own; the peak is the kernel's
(ru_maxrss). A round starts all rows of a shape one after the other, and tokens/s are the median of all steps but each
process's first. All rows of a micro-batch must end with one chain hash, else the script stops.
"""

import argparse
import statistics
import sys
import tempfile

from trainings import PRECISIONS, SHAPES, STEPS, make_tokens, measure_ours, our_config, plan_of

MODES = [None, "whole_layer", "one_in_two", "one_in_three", "one_in_four", "one_in_eight", "two_in_three", "three_in_four",
         "fine_grained"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the olmo-harness to measure")
    parser.add_argument("--shapes", default="T,S,M")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, help="steps of a process (default: 8, 4, 3 at T, S, M)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--tokenizer", default="tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    return parser.parse_args()


def rows_of(shape):
    """Modes at the whole batch as one micro-batch; without and with whole_layer at micro-batches of one instance."""
    batch = SHAPES[shape]["batch"]
    return [(batch, mode) for mode in MODES] + [(1, None), (1, "whole_layer")]


def measure(arguments, shape, token_file):
    steps = arguments.steps or STEPS[shape]
    rows = {row: dict(peak=0, seconds=[], others=0) for row in rows_of(shape)}
    for _ in range(arguments.rounds):
        for (microbatch, mode), row in rows.items():
            settings = {"device_train_microbatch_size": microbatch, "activation_checkpointing": mode}
            config = our_config(arguments, shape, token_file, steps, settings | PRECISIONS[arguments.precision])
            row["plan"] = plan_of(arguments, config)["memory_bytes"]
            result = measure_ours(arguments, config)
            row["peak"] = max(row["peak"], result["peak_mib"])
            row["others"] = max(row["others"], result["others"])
            row["seconds"] += result["seconds"][1:]
            row["chain"] = result["chain"]
            print(f"{shape} {microbatch} {mode}: {row['peak']:.0f} MiB", file=sys.stderr)
    for (microbatch, mode), row in rows.items():
        if row["chain"] != rows[(microbatch, None)]["chain"]:
            sys.exit(f"{shape}: the chain under {mode} differs from the chain without")
    return rows


def table_line(shape, rows, microbatch, mode):
    row, tokens = rows[(microbatch, mode)], SHAPES[shape]["batch"] * SHAPES[shape]["length"]
    plan, saved = row["plan"]["total"] / 2**20, row["plan"]["saved_activations"] / 2**20
    seconds = statistics.median(row["seconds"])
    share = statistics.median(rows[(microbatch, None)]["seconds"]) / seconds
    gap = row["peak"] - plan
    return (f"| {shape} | {microbatch} | {mode or '-'} | {saved:.0f} | {plan:.0f} | {row['peak']:.0f} | {gap:+.0f} | "
            f"{100 * gap / plan:+.1f} % | {tokens / seconds:.0f} | {share:.2f} | {100 * row['others']:.0f} % |")


def main():
    arguments = parse_arguments()
    print("| shape | micro-batch | recomputed | saved activations, MiB | plan, MiB | peak, MiB | peak minus plan | of the plan | "
          "tokens/s | of those without | others |\n|" + " --- |" * 11)
    with tempfile.TemporaryDirectory() as folder:
        for shape in arguments.shapes.split(","):
            rows = measure(arguments, shape, make_tokens(folder, shape))
            for microbatch, mode in rows:
                print(table_line(shape, rows, microbatch, mode), flush=True)


if __name__ == "__main__":
    main()
