#!/usr/bin/env python3
"""Times `report parity` on two runs of a million steps and two evaluations of 200,000 instances.

usage: bench/report_scale.py HARNESS [--steps N] [--instances N]

The databases are made by the harness itself (its tables, one step) and filled with rows whose hash chain is right.
Prints a Markdown table: seconds and peak memory of the whole process, size of the page.
"""
import argparse
import hashlib
import math
import os
import random
import sqlite3
import struct
import subprocess
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def make_run(harness, folder, name):
    """One step of the tiny config, for its tables and its first row."""
    tokens = os.path.join(folder, "tokens.npy")
    if not os.path.exists(tokens):
        with open(tokens, "wb") as out:
            out.write(b"".join(struct.pack("<H", i * 7 % 499) for i in range(64 * 32)))
    database = os.path.join(folder, name + ".db")
    subprocess.run([harness, "train", os.path.join(ROOT, "configs/train/tiny.json"), f"data.paths=[{tokens}]", "stop_at=1",
                    "--run-dir", os.path.join(folder, name), "--db", database], check=True, capture_output=True)
    return database


def fill_steps(db, steps, seed):
    """Continues the run with `steps` rows; the losses part slowly from the seed's other side."""
    noise = random.Random(seed)
    run, experiment = db.execute("SELECT run_id, experiment_digest FROM runs").fetchone()
    columns = [row[1] for row in db.execute("PRAGMA table_info(steps)")]
    first = dict(zip(columns, db.execute("SELECT * FROM steps").fetchone()))
    db.execute("DELETE FROM steps")
    db.execute("DELETE FROM state_seals")  # of the tiny run's chain
    chain = hashlib.sha256(b"olmo-harness chain 2" + bytes.fromhex(experiment)).digest()

    def rows():
        nonlocal chain
        for step in range(1, steps + 1):
            batch = hashlib.sha256(struct.pack("<q", step)).digest()
            loss = 3 + 8 / math.sqrt(step) + 1e-4 * noise.random() * min(1, step / 1e4)
            norm = struct.unpack("<f", struct.pack("<f", 1 + noise.random()))[0]
            losses = hashlib.sha256(batch).digest()
            chain = hashlib.sha256(b"olmo-link-2" + chain + struct.pack("<Q", step) + batch + losses + struct.pack("<d", loss)
                                   + bytes(16) + struct.pack("<f", norm) + bytes(4)).digest()
            row = dict(first, step=step, tokens=step * 2048, ce_loss=loss, loss=loss, z_loss=None, grad_norm=norm,
                       batch_hash=batch.hex(), loss_hash=losses.hex(), chain_hash=chain.hex())
            yield [row[name] for name in columns]

    db.executemany(f"INSERT INTO steps VALUES ({','.join('?' * len(columns))})", rows())
    return run


def fill_evaluation(db, instances, seed):
    noise, shared = random.Random(seed), random.Random(0)
    evaluation = "20260101T000000-00000000"
    db.execute("INSERT INTO evaluations VALUES (?,NULL,NULL,NULL,'2026','2026','finished','','w','t','c','','{}','{}','{}','{}')", [evaluation])
    tasks = [f"task{i:02}" for i in range(20)]
    db.executemany("INSERT INTO evaluation_tasks VALUES (?,?,'rank_classification','olmo','d','x','acc','finished','')",
                   [(evaluation, task) for task in tasks])
    columns = [row[1] for row in db.execute("PRAGMA table_info(evaluation_options)")]
    numbers = {row[1]: row[2] for row in db.execute("PRAGMA table_info(evaluation_options)")}

    def rows():
        for i in range(instances):
            scores = [-40 + 4 * shared.gauss(0, 1) + 1e-3 * noise.gauss(0, 1) for _ in range(4)]
            order = sorted(range(4), key=lambda k: -scores[k])
            label = shared.randrange(4)
            for k in range(4):
                row = {name: ("" if kind == "TEXT" else 1) for name, kind in numbers.items()}
                best_other = max(score for j, score in enumerate(scores) if j != k)
                row.update(evaluation_id=evaluation, task=tasks[i % 20], doc_id=i // 20, cont_id=k, label=label, logprob=scores[k],
                           request_hash=hashlib.sha256(b"%d %d" % (i, k)).hexdigest(), rank=order.index(k) + 1,
                           margin=scores[k] - best_other)
                yield [row[name] for name in columns]

    db.executemany(f"INSERT INTO evaluation_options VALUES ({','.join('?' * len(columns))})", rows())
    return evaluation


def measure(words):
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(words, stdout=out, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(child.pid, 0)
        out.seek(0)
        verdict = out.readline().decode().strip("# \n")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--instances", type=int, default=200_000)
    options = parser.parse_args()
    harness = os.path.abspath(options.harness)
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for seed, name in enumerate("ab", 1):
            path = make_run(harness, folder, name)
            with sqlite3.connect(path) as db:
                run = fill_steps(db, options.steps, seed)
                evaluation = fill_evaluation(db, options.instances, seed)
            db.close()
            names.append((path, run, evaluation))
        page = os.path.join(folder, "page.html")
        print("| report | rows | seconds | peak MiB | page kB | verdict |\n| --- | --- | --- | --- | --- | --- |")
        for what, rows, column in (("steps", options.steps, 1), ("instances", options.instances, 2)):
            sides = [f"{name[0]}:{name[column]}" for name in names]
            more = ["--skip-evaluations"] if column == 1 else []
            seconds, peak, verdict = measure([harness, "report", "parity", *sides, *more, "--out", page])
            print(f"| {what} | 2 × {rows:,} | {seconds:.1f} | {peak:.0f} | {os.path.getsize(page) / 1000:.0f} | {verdict} |")


if __name__ == "__main__":
    main()
