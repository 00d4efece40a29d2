#!/usr/bin/env python3
"""Kills and stops ranks of a small training at random moments, and resumes it with another number of ranks.

Each row is one trial of `olmo-harness train --nproc N`: a random rank gets SIGKILL or SIGSTOP at a random moment, or
when the run is seen to do what the column "moment" says: `start` (its record exists, and no step: the first step is the
one that is traced), `save` (a checkpoint is being written), `evaluation` (one is under way). It holds if all ranks
have ended within the limit, with exit code 75 and a message that names that rank, if the last checkpoint verifies, and
if the same command with another --nproc then goes on to the hash chain, the weights and the evaluations of a training
that nobody disturbed. Exit code 5 if a trial does not hold.

    bench/rank_faults.py build/release/olmo-harness --trials 20
"""
import argparse
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = [2, 3, 4]
MOMENTS = ["any", "start", "save", "evaluation"]
TIMEOUT = 3  # --rank-timeout
# A stopped rank is silent for TIMEOUT; --nproc then gives the others 2 * TIMEOUT + 10 s.
LIMIT = 3 * TIMEOUT + 10
LONGEST = 1500  # steps of the undisturbed training


def write_tokens(path):
    ids = (((i * 2654435761) % 2**32 >> 16) % 499 for i in range(64 * 32))
    path.write_bytes(b"".join(i.to_bytes(2, "little") for i in ids))


def command(binary, tokens, run_dir, *more):
    return [
        binary, "train", str(Path(__file__).parent.parent / "configs/train/tiny.json"), f"data.paths=[{tokens}]",
        "threads=1", "max_duration=1000000000", "save_interval=7", "save_num_checkpoints_to_keep=2",
        "hash_interval=1", "eval_interval=5",
        f"evaluators=[{{label: held, data: {{paths: [{tokens}]}}, subset_num_batches: 4, device_eval_batch_size: 4}}]",
        "--run-dir", str(run_dir), *more]


def rank_pids(parent):
    """The ranks' processes by rank; those that have started."""
    ranks = {}
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return ranks
    for pid in children:
        try:
            found = re.search(rb"OLMO_HARNESS_RANK=(\d+)", Path(f"/proc/{pid}/environ").read_bytes())
        except OSError:
            continue
        if found:
            ranks[int(found[1])] = int(pid)
    return ranks


def first_value(run_dir, query):
    """Of the run's record; nothing as long as there is none."""
    database = run_dir / "run.db"
    if not database.exists():
        return None
    try:
        with sqlite3.connect(database) as connection:
            return connection.execute(query).fetchone()[0]
    except sqlite3.Error:
        return None


def last_step(run_dir):
    return first_value(run_dir, "SELECT coalesce(max(step), 0) FROM steps") or 0


def is_seen(run_dir, moment):
    if moment == "start":
        return first_value(run_dir, "SELECT (SELECT count(*) FROM attempts) > 0 AND NOT EXISTS (SELECT 1 FROM steps)") == 1
    if moment == "save":
        return any(run_dir.glob("step*-tmp"))
    if moment == "evaluation":
        return bool(first_value(run_dir, "SELECT count(*) FROM evaluations WHERE status = 'running'"))
    return True


def wait_for(training, run_dir, moment):
    """Whether it was seen before the training ended or ten seconds went by."""
    until = time.monotonic() + 10
    while not is_seen(run_dir, moment):
        if training.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def proof(run_dir, step):
    """The hash chain at a step, the hashes of all weights and moments after it, and what the evaluations up to it gave."""
    with sqlite3.connect(run_dir / "run.db") as connection:
        chain = connection.execute("SELECT chain_hash FROM surviving_steps WHERE step = ?", (step,)).fetchall()
        state = connection.execute(
            "SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = ? ORDER BY part, name", (step,)).fetchall()
        scores = connection.execute(
            "SELECT DISTINCT e.step, m.task, m.metric, m.value FROM evaluation_metrics m JOIN evaluations e "
            "USING (evaluation_id) WHERE e.step <= ? AND e.step % 5 = 0 AND e.status = 'finished'", (step,)).fetchall()
    return chain, state, set(scores)


def is_equal(found, expected):
    """Evaluations that were cut short are missing; those that are there must be the same."""
    return found[:2] == expected[:2] and len(found[0]) == 1 and len(found[1]) > 0 and found[2] <= expected[2]


def verifies(binary, run_dir):
    """The last checkpoint, if one was published."""
    steps = [each for each in run_dir.glob("step*") if re.fullmatch(r"step\d+", each.name)]
    if not steps:
        return True
    last = max(steps, key=lambda each: int(each.name[4:]))
    return subprocess.run([binary, "checkpoint", "verify", str(last)], capture_output=True).returncode == 0


def disturb(arguments, place, number, number_of_signal, rng):
    """One trial: its row, and whether it held."""
    run_dir, log_path = place / f"run-{number}", place / f"log-{number}"
    ranks, moment = SIZES[number % len(SIZES)], MOMENTS[number // len(SIZES) % len(MOMENTS)]
    after = 0 if moment == "start" else rng.uniform(0.05, arguments.longest)
    rank = rng.randrange(ranks)
    more = ["--nproc", str(ranks), "--rank-timeout", str(TIMEOUT)]
    with open(log_path, "w") as log:
        training = subprocess.Popen(
            command(arguments.binary, place / "tokens.npy", run_dir, *more), stderr=log, stdout=log)
        begin = time.monotonic()
        time.sleep(after)
        seen = wait_for(training, run_dir, moment)
        while rank not in (pids := rank_pids(training.pid)):
            time.sleep(0.01)
        os.kill(pids[rank], number_of_signal)
        after = time.monotonic() - begin
        begin = time.monotonic()
        try:
            code = training.wait(LIMIT + 20)
        except subprocess.TimeoutExpired:
            training.kill()
            code = "hung"
        seconds = time.monotonic() - begin
    text = log_path.read_text()
    named = re.findall(r"error: rank (\d+) \(process \d+ on [^)]*\) (has|hangs|was)", text)
    named = sorted({int(found[0]) for found in named})
    step = last_step(run_dir)
    sound = verifies(arguments.binary, run_dir)
    size = rng.choice([each for each in (1, 2, 3, 4) if each != ranks])
    end = step + 3
    resumed = subprocess.run(
        command(arguments.binary, place / "tokens.npy", run_dir, "--resume", "latest", f"stop_at={end}", "--nproc",
                str(size)), capture_output=True, text=True)
    same = resumed.returncode in (0, 75) and end <= LONGEST and is_equal(
        proof(run_dir, end), proof(place / "whole", end))
    holds = code == 75 and named == [rank] and seconds <= LIMIT and sound and same
    name = signal.Signals(number_of_signal).name
    print(f"| {number} | {name} | {rank} of {ranks} | {moment if seen else 'any'} | {after:.2f} s | {step} | {code} | {seconds:.1f} s | "
          f"{', '.join(map(str, named)) or 'nobody'} | {'sound' if sound else 'DAMAGED'} | {size} | {'equal' if same else 'OTHER'} | "
          f"{'holds' if holds else 'FAILS'} |", flush=True)
    if not holds:
        print(text[-2000:], resumed.stderr[-2000:], file=sys.stderr)
    return holds, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--trials", type=int, default=20, help="of each signal")
    parser.add_argument("--longest", type=float, default=4, help="seconds until the signal, at most")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    held, worst = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_tokens(place / "tokens.npy")
        subprocess.run(command(arguments.binary, place / "tokens.npy", place / "whole", f"stop_at={LONGEST}"),
                       check=False, capture_output=True)
        print("| trial | signal | rank | moment | after | steps | exit | ended after | named | checkpoint | resumed with | hashes | |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for number in range(2 * arguments.trials):
            kind = signal.SIGKILL if number < arguments.trials else signal.SIGSTOP
            holds, seconds = disturb(arguments, place, number, kind, rng)
            held += holds
            worst[kind.name] = max(worst.get(kind.name, 0), seconds)
    print(f"\n{held} of {2 * arguments.trials} hold; longest: " +
          ", ".join(f"{name} {seconds:.1f} s" for name, seconds in worst.items()))
    return 0 if held == 2 * arguments.trials else 5


if __name__ == "__main__":
    sys.exit(main())
