#!/usr/bin/env python3
"""Runs olmo_ops_bench and writes its products and attention as a table: our rate in fp32, its share of the measured FMA peak,
its ratio to LibTorch's rate, and our rate in bf16, all of one run with the order of the measurements shuffled.

Run: python3 bench/ops_table.py --bench build/release/bench/olmo_ops_bench --threads 2 --out bench/results/ops.md
"""

import argparse
import collections
import json
import pathlib
import platform
import subprocess


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def measure(arguments):
    """Median rates in GFLOP/s by name, e.g. `S/qkv/dx/ours`."""
    command = [arguments.bench, f"--benchmark_filter=threads:{arguments.threads}/", "--benchmark_format=json",
               f"--benchmark_min_time={arguments.seconds}", f"--benchmark_repetitions={arguments.repetitions}",
               "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {b["run_name"].split("/threads")[0]: b["FLOPS"] / 1e9 for b in report["benchmarks"] if b["aggregate_name"] == "median"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    rates = measure(arguments)
    peak = rates.pop("fma_peak")
    rows = collections.defaultdict(dict)
    for name, rate in rates.items():
        operation, side = name.rsplit("/", 1)
        rows[operation][side] = rate
    lines = [f"# Products and attention, {arguments.threads} threads", "",
             f"{cpu_name()}; medians of {arguments.repetitions} interleaved measurements. FMA peak measured in the same run: "
             f"{peak:.0f} GFLOP/s. Attention counts the causal half, forward and backward.", "",
             "| operation | GFLOP/s | of the peak | LibTorch GFLOP/s | ours / LibTorch | bf16 GFLOP/s | bf16 / fp32 |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for operation, sides in sorted(rows.items()):
        ours, torch, bf16 = sides["ours"], sides["torch"], sides.get("ours_bf16")
        in_bf16 = f"{bf16:.0f} | {bf16 / ours:.2f}" if bf16 else "- | -"
        lines.append(f"| {operation} | {ours:.0f} | {ours / peak:.2f} | {torch:.0f} | {ours / torch:.2f} | {in_bf16} |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
