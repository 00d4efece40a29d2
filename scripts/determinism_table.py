#!/usr/bin/env python3
"""Trains one small model many ways for 20 steps and writes the table of final hashes; exits 1 if two rows that must be equal differ.

Ways: instruction sets x threads x stopped and resumed at step 10 or not, and an ARM64 build under an emulator; each for every
micro-batch size, which is part of the definition (its rows are a group of their own). Needs Python's standard library only.

  scripts/determinism_table.py [--harness CMD] [--arm64 CMD] [--sizes 1,2,4] [--few] [--jobs N] [--output reports/determinism.md]

--arm64 takes what scripts/build_arm64.sh printed, in quotes.
"""
import argparse
import array
import collections
import concurrent.futures
import datetime
import glob
import hashlib
import json
import os
import pathlib
import platform
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, HALF = 20, 10
SEQUENCE, BATCH = 128, 4
# Four layers of OLMo 1B's kind over the bytes of a text, with room for an end of text and a padding id.
MODEL = {
    "d_model": 64, "n_heads": 4, "n_layers": 4, "max_sequence_length": SEQUENCE,
    "vocab_size": 258, "embedding_size": 384, "eos_token_id": 256, "pad_token_id": 257,
}
USAGE_ERROR = 2  # the harness's exit code for an option that this build or machine cannot honour

Way = collections.namedtuple("Way", "machine command settings isa threads resumed")
Row = collections.namedtuple("Row", "size way chain state loss seconds not_run")


def write_tokens(path):
    """The bytes of the repository's sample documents, in the order of their names, an end of text after each."""
    ids = array.array("H")
    for name in sorted(glob.glob(str(ROOT / "evals/samples/perplexity/*/*/*.jsonl"))):
        with open(name, encoding="utf-8") as lines:
            for line in lines:
                ids.extend(json.loads(line)["text"].encode())
                ids.append(MODEL["eos_token_id"])
    if sys.byteorder == "big":
        ids.byteswap()
    path.write_bytes(ids.tobytes())
    return len(ids)


def train(way, size, tokens, folder):
    """Returns the finished run's directory, or the reason why this machine or build cannot run it."""
    run = folder / "run"
    command = way.command + [
        "train", str(ROOT / "configs/train/tiny.json"), f"data.paths=[{tokens}]", f"max_duration={STEPS}",
        f"global_train_batch_size={BATCH}", f"device_train_microbatch_size={size}", f"threads={way.threads}",
        "save_interval=1000", "--run-dir", str(run)]
    command += [f"model.{key}={value}" for key, value in MODEL.items()] + way.settings
    stages = [[f"stop_after={HALF}"], ["--resume", "latest"]] if way.resumed else [[]]
    for stage, more in enumerate(stages):
        ended = subprocess.run(command + more, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        expected = 75 if stage + 1 < len(stages) else 0
        if ended.returncode == USAGE_ERROR and stage == 0:
            return None, ended.stderr.strip().splitlines()[-1]
        if ended.returncode != expected:
            raise SystemExit(f"determinism_table.py: {shlex.join(command + more)} exited {ended.returncode}:\n{ended.stderr[-2000:]}")
    return run, None


def read_record(run):
    """(chain hash, hash over the names and hashes of all tensors of the last state, last loss, the attempt's facts)."""
    with sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True) as db:
        steps, chain, loss = db.execute(
            "SELECT step, chain_hash, ce_loss FROM surviving_steps ORDER BY step DESC LIMIT 1").fetchone()
        if steps != STEPS:
            sys.exit(f"determinism_table.py: {run} ended at step {steps} instead of {STEPS}")
        state = hashlib.sha256()
        tensors = db.execute("SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = ? ORDER BY part, name", (STEPS,))
        for tensor in tensors.fetchall():
            state.update(("|".join(tensor) + "\n").encode())
        facts = [json.loads(text) for text in db.execute("SELECT policy, build, environment FROM attempts LIMIT 1").fetchone()]
    db.close()
    return chain, state.hexdigest(), loss, facts


def ways(harness, arm64, few):
    """Every way to train; `few`: two of each slow kind."""
    here = platform.machine()
    every = [(threads, resumed) for threads in (1, 2, 4) for resumed in (False, True)]
    slow = [(1, False), (2, True)] if few else every
    if here != "aarch64":
        for threads, resumed in slow:
            yield Way("aarch64, emulated", arm64, ["isa=plain"], "plain", threads, resumed)
    for isa, chosen in (("plain", slow), ("avx2", every), ("avx512", every)):
        for threads, resumed in chosen:
            yield Way(here, harness, [f"isa={isa}"], isa, threads, resumed)
    for device in ("cuda", "rocm"):
        yield Way("GPU", harness, [f"device={device}"], device, 1, False)


def table(rows):
    lines = ["| micro-batch | machine | kernels | threads | resumed at 10 | chain hash of step 20 | hash over the state | last loss | s |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        way = row.way
        what = [row.size, way.machine, way.isa, way.threads, "yes" if way.resumed else "no"]
        what += [f"not run: {row.not_run}", "", "", ""] if row.not_run else [
            f"`{row.chain[:16]}`", f"`{row.state[:16]}`", f"{row.loss:.9g}", f"{row.seconds:.1f}"]
        lines.append("| " + " | ".join(str(cell) for cell in what) + " |")
    return "\n".join(lines)


def verdicts(rows, sizes):
    """(lines, whether every group is equal)."""
    lines, equal = [], True
    for size in sizes:
        group = [row for row in rows if row.size == size and not row.not_run]
        found = {(row.chain, row.state) for row in group}
        equal = equal and len(found) == 1
        if len(found) == 1:
            chain, state = found.pop()
            lines.append(f"- micro-batches of {size}: **{len(group)} trainings, all equal**; chain `{chain}`, state `{state}`")
        else:
            lines.append(f"- micro-batches of {size}: **{len(group)} trainings, {len(found)} different results**")
    return lines, equal


def machine_lines(facts):
    for name, (policy, build, environment) in facts.items():
        described = [environment.get(key) for key in ("cpu", "architecture", "os", "kernel")]
        version = f"{build['version']} ({build['git_revision']}), {build['compiler']}, LibTorch {build['libtorch']}"
        yield f"- {name}: {', '.join(filter(None, described))}; {environment.get('cores_usable')} cores; harness {version}"


def report(rows, sizes, facts, emulator, token_count, seconds):
    lines, equal = verdicts(rows, sizes)
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    text = f"""# The same bits, however it is trained

Made by `scripts/determinism_table.py` on {when} in {seconds / 60:.0f} minutes; do not edit.

One small OLMo ({MODEL['n_layers']} layers, d_model {MODEL['d_model']}, SwiGLU, RoPE, tied head) on {token_count} bytes of real text
(`evals/samples/`), sequences of {SEQUENCE}, {BATCH} a step, {STEPS} steps of AdamW under `numerics=portable`. The chain hash covers every step's batch, losses and
gradient norm; the state's hash covers the name and SHA-256 of every weight and moment after the last step. Rows of one micro-batch
size must be equal. The size itself is part of the definition (gradients of micro-batches are added along a fixed tree), so each has a group.

{chr(10).join(lines)}

## Machines

{chr(10).join(machine_lines(facts))}
{f"- emulator: {emulator}" + chr(10) if emulator else ""}
## Trainings

Hashes are cut to 16 digits; whole ones stand above.

{table(rows)}
"""
    return text, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harness", default=str(ROOT / "build/release/olmo-harness"), help="the binary, or a command in quotes")
    parser.add_argument("--arm64", help="the command that runs an ARM64 build here")
    parser.add_argument("--sizes", default="1,2,4", help=f"micro-batch sizes, divisors of {BATCH}")
    parser.add_argument("--few", action="store_true", help="only two trainings of each slow kind (plain and emulated kernels)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--output", default=str(ROOT / "reports/determinism.md"))
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    arm64 = shlex.split(options.arm64) if options.arm64 else None
    emulator = ""
    if arm64 and shutil.which(arm64[0]):
        emulator = subprocess.run([arm64[0], "--version"], capture_output=True, text=True).stdout.split("\n")[0]

    facts, started = {}, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tokens = pathlib.Path(scratch) / "tokens.npy"
        token_count = write_tokens(tokens)

        def measure(size, way):
            if way.command is None:
                return Row(size, way, "", "", 0.0, 0.0, "no ARM64 build was given (`--arm64`)")
            folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
            began = time.monotonic()
            run, reason = train(way, size, tokens, folder)
            if run is None:
                return Row(size, way, "", "", 0.0, 0.0, reason)
            chain, state, loss, found = read_record(run)
            facts.setdefault(way.machine, found)
            row = Row(size, way, chain, state, loss, time.monotonic() - began, None)
            shutil.rmtree(folder)
            print(table([row]).split("\n")[-1], file=sys.stderr, flush=True)
            return row

        every = [(size, way) for size in sizes for way in ways(shlex.split(options.harness), arm64, options.few)]
        rows = list(pool.map(lambda pair: measure(*pair), every))
    text, equal = report(rows, sizes, facts, emulator, token_count, time.monotonic() - started)
    pathlib.Path(options.output).write_text(text, encoding="utf-8")
    print("\n".join(verdicts(rows, sizes)[0]))
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
