"""Times the first pages of `olmo-harness serve` over many long runs.

    bench/serve.py --binary build/release/olmo-harness --database RUN.db --folder FOLDER [--runs 100] [--steps 1000000] [--rounds 5]

RUN.db holds one finished run, such as one of configs/train/tiny.json. Its copy in FOLDER/run000 is given steps until it has so many, and copied
into FOLDER/run001 and so on, with shared blocks where the file system has them (XFS, Btrfs: a million steps take 370 MB a copy elsewhere).
"Cold": the files are dropped from the system's cache and the server has just begun. "Warm": the same page again, and again after the
list is older than the server keeps it. Then a headless Chromium opens the pages of a server that has just begun, and says, from the start of the
navigation, when it had painted the first text (first-contentful-paint) and, on pages of curves, the first chart with its curves (Element Timing of
the label of its axis, which follows the curves); "cold" and once more. Prints Markdown tables of milliseconds, medians over the rounds.
"""

import argparse
import json
import os
import pathlib
import re
import sqlite3
import statistics
import subprocess
import time
import urllib.request

from chromium import Chromium


def lengthen(path, steps):
    """Repeats the last step of the run until it has so many."""
    with sqlite3.connect(path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(steps)")]
        last = db.execute("SELECT max(step) FROM steps").fetchone()[0]
        values = {"step": "n.i", "tokens": "n.i * (tokens / step)", "ce_loss": "ce_loss + 0.05 * (abs(random()) % 1000) / 1000.0"}
        chosen = ", ".join(values.get(name, name) for name in columns)
        db.execute(f"WITH RECURSIVE n(i) AS (SELECT {last} + 1 UNION ALL SELECT i + 1 FROM n WHERE i < {steps}) "
                   f"INSERT INTO steps SELECT {chosen} FROM n, (SELECT * FROM steps WHERE step = {last} ORDER BY attempt DESC LIMIT 1)")
        db.execute("UPDATE runs SET max_steps = ?", (steps,))
    db.close()


def copies(database, folder, runs, steps):
    paths = [folder / f"run{i:03d}" / "run.db" for i in range(runs)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            continue
        subprocess.run(["cp", "--reflink=auto", database if path == paths[0] else paths[0], path], check=True)
        if path == paths[0]:
            lengthen(path, steps)
    return paths


def drop_from_cache(paths):
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def milliseconds(address):
    """Of a page and its style and script, as a browser asks for them before it paints."""
    start = time.monotonic()
    for part in (address, re.match("https?://[^/]+", address)[0] + "/style.css"):
        urllib.request.urlopen(part).read()
    return (time.monotonic() - start) * 1000


def whole(address):
    return not re.search(r"reading, [\d,]+ databases so far", urllib.request.urlopen(address).read().decode())


def serve(binary, folder):
    return subprocess.Popen([binary, "serve", folder, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def keys(address):
    return [run["key"] for run in json.load(urllib.request.urlopen(address + "api/runs"))["runs"]]


def painted(binary, folder, paths):
    """When a browser painted each page, cold and once more."""
    drop_from_cache(paths)
    server = serve(binary, folder)
    try:
        address = server.stdout.readline().strip()
        found = []
        with Chromium() as browser:
            browser.look_for(".chart .xl")

            def paint(page):
                browser.open(address + page)
                return browser.first_paint(), browser.painted() if page else None

            found += [paint(""), paint("")]
            while not whole(address):
                time.sleep(0.02)
            known = keys(address)
            for page in ("run/" + known[0], *("curves?" + "&".join("run=" + key for key in known[:count]) for count in (5, len(known)))):
                drop_from_cache(paths)
                found += [paint(page), paint(page)]
        return found
    finally:
        server.terminate()
        server.wait()


def one_round(binary, folder, paths):
    drop_from_cache(paths)
    start = time.monotonic()
    server = serve(binary, folder)
    try:
        address = server.stdout.readline().strip()
        begun = (time.monotonic() - start) * 1000
        cold = milliseconds(address)
        while not whole(address):
            time.sleep(0.02)
        complete = (time.monotonic() - start) * 1000
        warm = milliseconds(address)
        time.sleep(4)
        again = milliseconds(address)
        key = re.search(r'href="/run/([^"]+)"', urllib.request.urlopen(address).read().decode())[1]
        run = milliseconds(address + "run/" + key)
        curves = address + "curves?" + "&".join("run=" + key for key in keys(address))
        return begun, cold, complete, warm, again, run, milliseconds(curves), milliseconds(curves)
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    paths = copies(arguments.database, arguments.folder, arguments.runs, arguments.steps)
    http = [one_round(arguments.binary, arguments.folder, paths) for _ in range(arguments.rounds)]
    paints = [painted(arguments.binary, arguments.folder, paths) for _ in range(arguments.rounds)]
    names = ("start of the program until it listens", "the table, cold", "until all runs are in the table, from the start",
             "the table, warm", "the table, looked at again after 4 s", "the page of a run",
             "curves of all runs, cold", "curves of all runs, warm")
    pages = ("the table", "the page of a run", "curves of 5 runs", f"curves of {arguments.runs} runs")
    painted_names = [name + how for name in pages for how in (", cold", ", once more")]
    print(f"| {arguments.runs} runs | ms |\n|---|---|")
    for name, values in zip(names, zip(*http)):
        print(f"| {name} | {statistics.median(values):.0f} |")
    print("\n| painted in Chromium | first text, ms | first chart, ms |\n|---|---|---|")
    for name, values in zip(painted_names, zip(*paints)):
        print(f"| {name} |", *(f"{statistics.median(each):.0f} |" if None not in each else "- |" for each in zip(*values)))


if __name__ == "__main__":
    main()
