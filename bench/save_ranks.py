#!/usr/bin/env python3
"""Times checkpoints of olmo-harness saved and loaded by several ranks of one machine against one process.

Run:   python3 bench/save_ranks.py --binaries build/release/olmo-harness --folder /dev/shm --ranks 1,2,4

Every training is of one short step, after which it saves with nothing beside; then it is asked to go on from there, which
loads the checkpoint and ends, since no step is left. All ranks together have as many threads as the machine has processors.
A round starts all binaries and numbers of ranks one after the other. Saves are timed by the record, from the layout of the
file until it is durable; loads are whole processes, from start to end.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from trainings import SHAPES, exported, make_tokens, our_config, spread


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", nargs="+", required=True, help="to compare, the first one as the base")
    parser.add_argument("--folder", default="/dev/shm", help="where the runs are written")
    parser.add_argument("--shape", default="S", choices=SHAPES)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strategy", default="FULL_SHARD")
    parser.add_argument("--tokenizer", default="tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    return parser.parse_args()


def make_config(arguments, folder, ranks):
    shape = SHAPES[arguments.shape]
    shape["length"] = 64  # checkpoints are as large, and steps short
    arguments.threads = max(1, os.cpu_count() // ranks)
    settings = {"distributed_strategy": "fsdp", "fsdp": {"precision": "mixed", "sharding_strategy": arguments.strategy},
                "device_train_microbatch_size": 1}
    config = folder / "config.json"
    config.write_text(json.dumps(our_config(arguments, arguments.shape, make_tokens(folder, arguments.shape), 1, settings)))
    return config


def train(binary, folder, config, ranks, *options):
    command = [binary, "train", str(config), "--run-dir", str(folder / "run"), "--db", str(folder / "runs.db"), "--nproc",
               str(ranks), *options]
    started = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr[-3000:]}")
    return time.monotonic() - started


def measure(arguments, binary, ranks):
    """Seconds of a save and of a load."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        config = make_config(arguments, folder, ranks)
        train(binary, folder, config, ranks)
        arguments.binary = binary
        last = max(exported(arguments, folder / "runs.db", "checkpoints"), key=lambda row: row["step"])
        return last["seconds"], train(binary, folder, config, ranks, "--resume", "latest")


def main():
    arguments = parse_arguments()
    ranks = [int(each) for each in arguments.ranks.split(",")]
    saves, loads = {}, {}
    print(f"load {os.getloadavg()[0]:.0f} before", file=sys.stderr)
    for _ in range(arguments.rounds):
        for size in ranks:
            for binary in arguments.binaries:
                saved, loaded = measure(arguments, binary, size)
                saves.setdefault((binary, size), []).append(saved)
                loads.setdefault((binary, size), []).append(loaded)
    print(f"load {os.getloadavg()[0]:.0f} after", file=sys.stderr)
    print("| binary | ranks | save s | of one process | load s, whole process |\n| --- | --- | --- | --- | --- |")
    for binary, size in saves:
        alone = statistics.median(saves[binary, ranks[0]])
        print(f"| {binary} | {size} | {spread(saves[binary, size], 2)} | {statistics.median(saves[binary, size]) / alone:.2f} "
              f"| {spread(loads[binary, size], 2)} |")


if __name__ == "__main__":
    main()
