#!/usr/bin/env python3
"""Compares the peak memory of each rank of trainings with what `train --dry-run --world-size N` plans.

Run:   python3 bench/rank_memory.py --binary build/release/olmo-harness --shapes T,S

A row for each precision, strategy and number of ranks, once as it is and once with a save after each step and
`whole_layer` recomputation. Shapes and configs are those of trainings.py, two steps in micro-batches of one instance. The peak is the
kernel's of each rank (VmHWM). Exit code 5 if a rank is further from its plan than 3 % and 0.2 GiB.
"""

import argparse
import sys
import tempfile

from train_ranks import ROWS, STRATEGIES, Peaks
from trainings import PRECISIONS, SHAPES, make_tokens, measure_ours, our_config, plan_of

HYBRID = {"distributed_strategy": "fsdp",
          "fsdp": {"precision": "mixed", "sharding_strategy": "HYBRID_SHARD", "hybrid_sharding_num_model_replicas": 2}}
SETTINGS = {"-": {}, "saves, whole_layer": {"save_interval": 1, "activation_checkpointing": "whole_layer"}}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the olmo-harness to measure")
    parser.add_argument("--shapes", default="T,S,M")
    parser.add_argument("--ranks", default="1,2,3,4")
    parser.add_argument("--precisions", default="fp32,mixed,autocast")
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--tokenizer", default="tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    return parser.parse_args()


def strategies_of(precision):
    return {name: STRATEGIES[name] for name in ROWS[precision]} | ({} if precision == "autocast" else {"HYBRID_SHARD": HYBRID})


def measure(arguments, config, ranks):
    """The plan and the peak of each rank, in MiB."""
    peaks = Peaks()
    result = measure_ours(arguments, config, ranks, peaks.look)
    plan = plan_of(arguments, config, "--world-size", str(ranks))["memory_bytes"]["total"] / 2**20
    return plan, [peaks.mib.get(row["pid"], result["peak_mib"]) for row in result["ranks"]]


def main():
    arguments = parse_arguments()
    missed = 0
    print("| shape | precision | strategy | ranks | settings | plan, MiB | peak by rank, MiB | furthest |\n|" + " --- |" * 8)
    with tempfile.TemporaryDirectory() as folder:
        for shape in arguments.shapes.split(","):
            token_file = make_tokens(folder, shape)
            for precision in arguments.precisions.split(","):
                for strategy, ranks, name in ((strategy, int(ranks), name) for strategy in strategies_of(precision)
                                              for ranks in arguments.ranks.split(",") for name in SETTINGS):
                    if strategy == "HYBRID_SHARD" and ranks % 2 != 0:
                        continue
                    settings = (PRECISIONS[precision] | strategies_of(precision)[strategy] | SETTINGS[name] |
                                {"device_train_microbatch_size": 1, "global_train_batch_size": max(SHAPES[shape]["batch"], ranks)})
                    plan, peaks = measure(arguments, our_config(arguments, shape, token_file, 2, settings), ranks)
                    furthest = max((peak - plan for peak in peaks), key=abs)
                    missed += abs(furthest) > 0.03 * plan + 204.8
                    print(f"| {shape} | {precision} | {strategy} | {ranks} | {name} | {plan:.0f} | "
                          f"{', '.join(f'{peak:.0f}' for peak in peaks)} | {furthest:+.0f} |", flush=True)
    return 5 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
