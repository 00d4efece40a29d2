#!/usr/bin/env python3
"""Trains one small model in many processes of one machine: what each further rank costs beside its share of the work.

Run:   python3 bench/many_ranks.py --binaries build/release/olmo-harness --ranks 1,16,32,64

The same 64 sequences a step, one a micro-batch, however many ranks take them; each rank has one thread, and all together far
more than the machine has processors: times tell of two programs, or two numbers of ranks, and not of a cluster, whose ranks
work at the same time. Every training must end with the same chain hash. A save lasts from the layout of the file until it is
durable; those of the first and of the middle one lie beside a step. A rank takes 130 MiB.
"""

import argparse
import statistics
import sys
import tempfile

from trainings import make_tokens, measure_ours, our_config, processor, spread

SHAPE, STEPS, SEQUENCES = "XS", 4, 64


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", nargs="+", required=True, help="to compare")
    parser.add_argument("--ranks", default="1,16,32")
    parser.add_argument("--strategy", default="ddp", choices=["ddp", "fsdp"])
    arguments = parser.parse_args()
    arguments.threads, arguments.tokenizer = 1, "none"
    return arguments


def main():
    arguments = parse_arguments()
    chains = set()
    print(f"{processor()}\n\n| binary | ranks | whole run s | first step done s | a later step s | saves s |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        config = our_config(arguments, SHAPE, make_tokens(folder, SHAPE, STEPS * SEQUENCES), STEPS, {
            "global_train_batch_size": SEQUENCES, "device_train_microbatch_size": 1, "save_interval": STEPS // 2,
            "distributed_strategy": arguments.strategy})
        for ranks in (int(each) for each in arguments.ranks.split(",")):
            for arguments.binary in arguments.binaries:
                found = measure_ours(arguments, config, ranks)
                chains.add(found["chain"])
                print(f"| {arguments.binary} | {ranks} | {found['wall']:.1f} | {found['first_step']:.1f} "
                      f"| {statistics.median(found['seconds'][1:]):.2f} | {spread(found['saves'], 2)} |", flush=True)
    if len(chains) != 1:
        sys.exit(f"the trainings ended with {len(chains)} chain hashes: expected one")


if __name__ == "__main__":
    main()
