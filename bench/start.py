#!/usr/bin/env python3
"""Times commands that compute nothing, from the start of the process to its end.

usage: bench/start.py HARNESS [--before HARNESS] [--rounds N]

Two trainings of one step are made for them. With --before another binary takes turns with the first. Prints a Markdown table of medians.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from report_scale import make_run

COMMANDS = [["--help"], ["train", "--help"], ["runs", "list", "."], ["runs", "show", "a"], ["report", "parity", "a", "b"],
            ["data", "stats", "tokens.npy", "--eos-token-id", "1"]]


def measure(binary, words, folder):
    start = time.perf_counter()
    subprocess.run([binary, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--before", help="another binary")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    binaries = [os.path.abspath(path) for path in (options.before, options.harness) if path]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a", "b"):
            make_run(binaries[-1], folder, name)
            pathlib.Path(folder, name + ".db").rename(pathlib.Path(folder, name, "run.db"))
        print("| command |" + (" before, s |" if options.before else "") + " s |")
        print("| --- |" + " --- |" * len(binaries))
        for words in COMMANDS:
            rounds = [[measure(binary, words, folder) for binary in binaries] for _ in range(options.rounds)]
            cells = [f"{statistics.median(of_one):.3f}" for of_one in zip(*rounds)]
            print(f"| `{' '.join(words)}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
