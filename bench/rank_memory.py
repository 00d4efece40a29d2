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

from train_ranks import ROWS, STRATEGIES, is_far, measure_with_memory
from trainings import PRECISIONS, SHAPES, make_tokens, our_config

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
                    result = measure_with_memory(arguments, our_config(arguments, shape, token_file, 2, settings), ranks,
                                                 "--world-size", str(ranks))
                    plan, peaks = result["plan"], result["peaks"]
                    furthest = max(peaks, key=lambda peak: abs(peak - plan))
                    missed += is_far(furthest, plan)
                    print(f"| {shape} | {precision} | {strategy} | {ranks} | {name} | {plan:.0f} | "
                          f"{', '.join(f'{peak:.0f}' for peak in peaks)} | {furthest - plan:+.0f} |", flush=True)
    return 5 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
