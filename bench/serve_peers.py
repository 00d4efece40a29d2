#!/usr/bin/env python3
"""Times how long `olmo-harness serve` and TensorBoard take, from the start of the program, until they answer with the curves of long runs.

    bench/serve_peers.py --binary build/release/olmo-harness --database RUN.db --folder FOLDER [--runs 5] [--steps 1000000] [--rounds 5]

The databases are those of bench/serve.py. TensorBoard reads what `runs export --to tensorboard` writes of them, with its fast loader
(pip install tensorboard); it answers from the start and reads on, so what is awaited is an answer that holds the last step of each run.
Both read files that the system has in its cache, and both give a part of the steps: TensorBoard 1000 drawn by chance, `serve` the bins of its
chart with the least and the greatest value of each. The two take turns. Prints a Markdown table of milliseconds, medians over the rounds.
"""

import argparse
import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from serve import copies, keys, serve

LOSS = "train/CrossEntropyLoss"


def ours(binary, folder):
    start = time.monotonic()
    server = serve(binary, folder / "databases")
    try:
        address = server.stdout.readline().strip()
        page = urllib.request.urlopen(address + "curves?" + "&".join("run=" + key for key in keys(address))).read()
        took = time.monotonic() - start
        return took * 1000, len(page)
    finally:
        server.terminate()
        server.wait()


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def tensorboard(folder, steps):
    port = free_port()
    names = sorted(path.name for path in (folder / "events").iterdir())
    start = time.monotonic()
    server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", folder / "events", "--port", str(port), "--load_fast", "true"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            answer = [scalars(port, name) for name in names]
            if all(points and points[-1][1] == steps for points in answer):
                took = time.monotonic() - start
                return took * 1000, len(json.dumps(answer))
            time.sleep(0.05)
    finally:
        server.terminate()
        server.wait()


def scalars(port, run):
    query = urllib.parse.urlencode({"run": run, "tag": LOSS})
    try:
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?{query}"))
    except (urllib.error.URLError, ConnectionError):
        return []  # it does not listen yet, or has not found the run


def export(binary, paths, events):
    """All have one id, as copies of one run, so each is exported by itself and moved."""
    for path in paths:
        one = events.parent / "one"
        subprocess.run([binary, "runs", "export", path, "--to", "tensorboard", one], check=True, stdout=subprocess.DEVNULL)
        (written,) = one.iterdir()
        shutil.move(written, events / path.parent.name)
        one.rmdir()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    paths = copies(arguments.database, arguments.folder / "databases", arguments.runs, arguments.steps)
    events = arguments.folder / "events"
    if not events.exists():
        events.mkdir()
        start = time.monotonic()
        export(arguments.binary, paths, events)
        print(f"exported in {time.monotonic() - start:.1f} s\n")
    rounds = [(ours(arguments.binary, arguments.folder), tensorboard(arguments.folder, arguments.steps))
              for _ in range(arguments.rounds)]
    print(f"| {arguments.runs} runs of {arguments.steps:,} steps | ms | kB |\n|---|---|---|")
    for name, values in zip(("olmo-harness serve", "TensorBoard"), zip(*rounds)):
        milliseconds, size = map(statistics.median, zip(*values))
        print(f"| {name} | {milliseconds:.0f} | {size / 1000:.0f} |")


if __name__ == "__main__":
    main()
