#!/usr/bin/env python3
"""Profiles one training step of olmo-harness on a GPU: the share of each kernel in the time of all.

Needs: for cuda Nsight Compute (ncu) or Nsight Systems (nsys), for rocm rocprof. Where each is missing, or may not
read the GPU's counters, exit code 77: no profile is possible here.
Run:   python3 bench/gpu_profile.py --binary build/release/olmo-harness --device cuda --out bench/results/gpu_profile.md

OLMo-1B's shape (trainings.py) in bf16 with numerics=fast, two steps that are not traced; counted is the second, which is told from the first by
its last kernels: the updates of the optimizer (olmo_adamw) end a step. ncu runs one kernel at a time and so says nothing
of gaps between them; the time of a step without it stands in gpu_train.md.
"""

import argparse
import collections
import csv
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from trainings import PRECISIONS, SHAPES, gpu_name, make_tokens, our_config, publish

END_OF_STEP = "olmo_adamw"
FORBIDDEN = "ERR_NVGPUCTRPERM"  # what NVIDIA's tools say to a user whom the driver keeps from the counters
NOT_POSSIBLE = 77


class NotPossible(Exception):
    """This machine does not let a tool profile."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--device", choices=["cuda", "rocm"], required=True)
    parser.add_argument("--shape", choices=list(SHAPES), default="1B")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="mixed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokenizer", default="tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    parser.add_argument("--out", type=pathlib.Path, help="Markdown file to write; the table goes to stdout in any case")
    return parser.parse_args()


# Each returns (kernel, nanoseconds) of all launches in their order.


def rows_of(text, header):
    """The rows of a CSV that begins at the line with `header`."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if header in line), None)
    return [] if first is None else list(csv.DictReader(io.StringIO("\n".join(lines[first:]))))


def with_ncu(command, folder):
    log = folder / "ncu.csv"
    run(["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--target-processes", "all",
         "--metrics", "gpu__time_duration.sum", "--log-file", str(log), *command], log)
    return [(row["Kernel Name"], float(row["gpu__time_duration.sum"].replace(",", "")))
            for row in rows_of(log.read_text(), '"Kernel Name"') if row["ID"]]  # the row of units has none


def with_nsys(command, folder):
    report = folder / "step"
    run(["nsys", "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", "-o", str(report), *command])
    text = run(["nsys", "stats", "--report", "cuda_gpu_trace", "--format", "csv", f"{report}.nsys-rep"])
    return [(row["Name"], float(row["Duration (ns)"])) for row in rows_of(text, "Duration (ns)") if row["Name"]]


def with_rocprof(command, folder):
    table = folder / "step.csv"
    run(["rocprof", "--timestamp", "on", "-o", str(table), *command])
    return [(row["KernelName"], float(row["DurationNs"])) for row in rows_of(table.read_text(), "KernelName")]


TOOLS = {"cuda": {"ncu": with_ncu, "nsys": with_nsys}, "rocm": {"rocprof": with_rocprof}}


def run(command, log=None):
    """What it printed. `log` is a file that the tool writes instead."""
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr + (log.read_text() if log is not None and log.exists() else "")
    if FORBIDDEN in said:
        raise NotPossible(f"may not read the GPU's counters ({FORBIDDEN})")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:2])} ended with {done.returncode}: {said[-2000:]}")
    return done.stdout


def launches(arguments, command, folder):
    """Of the first tool that works, and its name."""
    lacks, problems = [], []
    for name, profile in TOOLS[arguments.device].items():
        if shutil.which(name) is None:
            lacks.append(f"{name} is not here")
            continue
        try:
            found = profile([part.replace("RUN", str(folder / f"run-{name}")) for part in command], folder)
        except NotPossible as reason:
            lacks.append(f"{name} {reason}")
            continue
        except (RuntimeError, OSError, KeyError, ValueError) as problem:
            problems.append(f"{name}: {problem}")
            continue
        if found:
            return name, found
        problems.append(f"{name} names no kernel")
    if not problems:
        print("left out: no profile is possible here: " + "; ".join(lacks))
        sys.exit(NOT_POSSIBLE)
    print("\n".join(problems))
    sys.exit("no profiler could be used: " + "; ".join(problem.splitlines()[0] for problem in [*lacks, *problems]))


def second_step(found):
    """The launches after those that end the first step."""
    ends = [i for i, (name, _) in enumerate(found) if END_OF_STEP in name]
    between = next((i for i, after in zip(ends, ends[1:], strict=False) if after > i + 1), None)
    return found if between is None else found[between + 1:]


def table(found):
    times, counts = collections.Counter(), collections.Counter()
    for name, nanoseconds in found:
        short = name.split("(")[0].removeprefix("void ")[:90]
        times[short] += nanoseconds
        counts[short] += 1
    total = sum(times.values())
    lines = ["| kernel | launches | ms | share |", "| --- | ---: | ---: | ---: |"]
    for name, nanoseconds in times.most_common():
        lines.append(f"| `{name}` | {counts[name]} | {nanoseconds / 1e6:.2f} | {100 * nanoseconds / total:.1f} % |")
    ours = sum(time for name, time in times.items() if "olmo_" in name)
    lines += [f"| all | {sum(counts.values())} | {total / 1e6:.1f} | 100 % |", "",
              f"Kernels of olmo-harness: {100 * ours / total:.1f} %; of the libraries: {100 - 100 * ours / total:.1f} %."]
    return lines


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        config = our_config(arguments, arguments.shape, make_tokens(folder, arguments.shape), 2,
                            PRECISIONS[arguments.precision] | {"device": arguments.device, "numerics": "fast", "trace_interval": 0})
        (folder / "config.json").write_text(json.dumps(config))
        command = [arguments.binary, "train", str(folder / "config.json"), "--run-dir", "RUN"]
        tool, found = launches(arguments, command, folder)
    text = "\n".join([
        "# Kernels of a training step on a GPU", "",
        f"`python3 bench/gpu_profile.py --shape {arguments.shape} --device {arguments.device} --precision {arguments.precision}` with "
        f"{tool} on {gpu_name(arguments.device)}, {time.strftime('%Y-%m-%d')}. The second step.", "", *table(second_step(found)), ""])
    publish(text, arguments.out)


if __name__ == "__main__":
    main()
