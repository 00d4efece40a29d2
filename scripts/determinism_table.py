#!/usr/bin/env python3
"""Trains one small model many ways for 20 steps and writes the table of final hashes; exits 1 if two rows that must be equal differ.

Ways: instruction sets x threads x stopped and resumed at step 10 or not, several ranks, recomputed activations, and an ARM64 build
under an emulator. Micro-batch size and precision are part of the definition: rows of each pair are a group of their own, which is
named by both. Needs Python's standard library only.

  scripts/determinism_table.py [--harness CMD] [--arm64 CMD] [--few] [--jobs N] [--save FILE] [--add FILE ...] [--output reports/determinism.md]

--arm64 takes what scripts/build_arm64.sh printed, in quotes. Rows that --save wrote on one machine join the table of another by --add.
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
import re
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

# What is part of the definition, and the ways of several ranks that it allows: (ranks, ranks after the resume, settings).
SHARDED = ["fsdp.sharding_strategy=FULL_SHARD"]
DDP = [(2, 4, []), (4, 1, [])]
FSDP = [(3, 3, SHARDED), (4, 2, ["fsdp.sharding_strategy=SHARD_GRAD_OP"])]
Definition = collections.namedtuple("Definition", "precision size settings ranks")
DEFINITIONS = [
    Definition("fp32", 1, [], [(n, m, ["distributed_strategy=ddp", *more]) for n, m, more in DDP]
               + [(n, m, ["distributed_strategy=fsdp", *more]) for n, m, more in FSDP]),
    Definition("fp32", 2, [], [(2, 2, [])]),
    Definition("fp32", 4, [], []),
    Definition("amp_bf16, ddp", 1, ["precision=amp_bf16", "distributed_strategy=ddp"], DDP),
    Definition("amp_bf16, fsdp", 1, ["precision=amp_bf16", "distributed_strategy=fsdp"], FSDP),
]

# `how`: what else is said of it. `first`, `then`: more words for the first half and for the resumed one.
Way = collections.namedtuple("Way", "machine command kernels threads resumed how settings first then")
Row = collections.namedtuple("Row", "precision size machine kernels threads resumed how chain state loss seconds not_run")


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


def train(way, definition, tokens, folder):
    """Returns the finished run's directory, or the reason why this machine or build cannot run it."""
    run = folder / "run"
    command = way.command + [
        "train", str(ROOT / "configs/train/tiny.json"), f"data.paths=[{tokens}]", f"max_duration={STEPS}",
        f"global_train_batch_size={BATCH}", f"device_train_microbatch_size={definition.size}", f"threads={way.threads}",
        "save_interval=1000", "--run-dir", str(run)]
    command += [f"model.{key}={value}" for key, value in MODEL.items()] + definition.settings + way.settings
    stages = [[f"stop_after={HALF}", *way.first], ["--resume", "latest", *way.then]] if way.resumed else [way.first]
    for stage, more in enumerate(stages):
        ended = subprocess.run(command + more, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        expected = 75 if stage + 1 < len(stages) else 0
        if ended.returncode == USAGE_ERROR and stage == 0 and way.kernels != "best":
            reason = ended.stderr.strip().splitlines()[-1].removeprefix("error: ")
            return None, re.sub(r" \([^()]*\)$", "", reason)  # the loader's own words, which name this machine's folders
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


def ways(definition, harness, arm64, few):
    """Every way to train; `few`: two of each slow kind."""
    here = platform.machine()
    every = [(threads, resumed) for threads in (1, 2, 4) for resumed in (False, True)]
    slow = [(1, False), (2, True)] if few else every

    def way(machine, command, kernels, threads, resumed, how="", settings=(), first=(), then=()):
        return Way(machine, command, kernels, threads, resumed, how, [*settings], [*first], [*then])

    if here != "aarch64":
        for threads, resumed in slow:
            yield way("aarch64, emulated", arm64, "plain", threads, resumed, settings=["isa=plain"])
    for isa, chosen in (("plain", slow), ("avx2", every), ("avx512", every)):
        for threads, resumed in chosen:
            yield way(here, harness, isa, threads, resumed, settings=[f"isa={isa}"])
    for first, then, settings in definition.ranks:
        how = ", ".join([f"{first} ranks" + (f", then {then}" if then != first else ""), *(word.split("=")[1] for word in settings)])
        yield way(here, harness, "best", 1, True, how, settings, ["--nproc", str(first)], ["--nproc", str(then)])
    yield way(here, harness, "best", 2, False, "whole blocks computed again", ["activation_checkpointing=whole_layer"])
    for device in ("cuda", "rocm"):
        yield way("GPU", harness, device, 1, False, settings=[f"device={device}"])


def table(rows):
    lines = ["| precision | micro-batch | machine | kernels | threads | resumed at 10 | else | chain hash of step 20 | hash over the state | last loss | s |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if row.not_run:
            continue
        cells = [row.precision, row.size, row.machine, row.kernels, row.threads, "yes" if row.resumed else "no", row.how,
                 f"`{row.chain[:16]}`" if row.chain else "of format 1", f"`{row.state[:16]}`", f"{row.loss:.9g}", f"{row.seconds:.1f}"]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def not_run(rows):
    """What could not be tried at all, each with its reason; of rows from several machines those that none could run."""
    kinds = {(row.machine, row.kernels): row.not_run for row in rows if row.not_run}
    ran = {(row.machine, row.kernels) for row in rows if not row.not_run}
    return [f"- {machine}, {kernels}: {reason}" for (machine, kernels), reason in kinds.items() if (machine, kernels) not in ran]


def verdicts(rows):
    """(lines, whether every group is equal)."""
    lines, equal = [], True
    for name in dict.fromkeys((row.precision, row.size) for row in rows):
        group = [row for row in rows if (row.precision, row.size) == name and not row.not_run]
        chains, states = {row.chain for row in group if row.chain}, {row.state for row in group}
        which = f"- {name[0]}, micro-batches of {name[1]}: **{len(group)} trainings, "
        if len(chains) == len(states) == 1:
            lines.append(f"{which}all equal**; chain `{chains.pop()}`, state `{states.pop()}`")
        else:
            equal = False
            lines.append(f"{which}{len(chains)} different chains, {len(states)} different states**")
    return lines, equal


def machine_lines(facts):
    for name, (policy, build, environment) in facts.items():
        described = [environment.get(key) for key in ("cpu", "architecture", "os", "kernel")]
        version = f"{build['version']} ({build['git_revision']}), {build['compiler']}, LibTorch {build['libtorch']}"
        yield f"- {name}: {', '.join(filter(None, described))}; {environment.get('cores_usable')} cores; harness {version}"


def report(rows, facts, emulator, token_count, seconds):
    lines, equal = verdicts(rows)
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    left_out = not_run(rows)
    text = f"""# The same bits, however it is trained

Made by `scripts/determinism_table.py` on {when} in {seconds / 60:.0f} minutes; do not edit.

One small OLMo ({MODEL['n_layers']} layers, d_model {MODEL['d_model']}, SwiGLU, RoPE, tied head) on {token_count} bytes of real text
(`evals/samples/`), sequences of {SEQUENCE}, {BATCH} a step, {STEPS} steps of AdamW under `numerics=portable`. The chain hash covers every step's batch, losses and
gradient norm; the state's hash covers the name and SHA-256 of every weight and moment after the last step. Rows of one precision and micro-batch
size must be equal. Both are part of the definition (gradients of micro-batches are added along a fixed tree; OLMo's bf16 rounds at other
places under `ddp` than under `fsdp`), so each pair has a group.

{chr(10).join(lines)}

## Machines

{chr(10).join(machine_lines(facts))}
{f"- emulator: {emulator}" + chr(10) if emulator else ""}
{"Not run:" + chr(10) + chr(10) + chr(10).join(left_out) + chr(10) if left_out else ""}
## Trainings

Hashes are cut to 16 digits; whole ones stand above. Kernels `best`: those that the program takes by itself. Ranks are processes of one machine.
Version 0.1.0 wrote chain hashes of format 1, which are other ones for the same trainings; its states compare.

{table(rows)}
"""
    return text, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harness", default=str(ROOT / "build/release/olmo-harness"), help="the binary, or a command in quotes")
    parser.add_argument("--arm64", help="the command that runs an ARM64 build here")
    parser.add_argument("--few", action="store_true", help="only two trainings of each slow kind (plain and emulated kernels)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--save", metavar="FILE", help="also write the rows as JSON, for --add")
    parser.add_argument("--add", metavar="FILE", nargs="*", default=[], help="rows of other machines")
    parser.add_argument("--output", default=str(ROOT / "reports/determinism.md"))
    options = parser.parse_args()
    arm64 = shlex.split(options.arm64) if options.arm64 else None
    emulator = ""
    if arm64 and shutil.which(arm64[0]):
        emulator = subprocess.run([arm64[0], "--version"], capture_output=True, text=True).stdout.split("\n")[0]

    facts, started = {}, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tokens = pathlib.Path(scratch) / "tokens.npy"
        token_count = write_tokens(tokens)

        def measure(definition, way):
            row = Row(definition.precision, definition.size, way.machine, way.kernels, way.threads, way.resumed, way.how, "", "", 0.0, 0.0, None)
            if way.command is None:
                return row._replace(not_run="no ARM64 build was given (`--arm64`)")
            folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
            began = time.monotonic()
            run, reason = train(way, definition, tokens, folder)
            if run is None:
                return row._replace(not_run=reason)
            chain, state, loss, found = read_record(run)
            facts.setdefault(way.machine, found)
            row = row._replace(chain=chain, state=state, loss=loss, seconds=time.monotonic() - began)
            shutil.rmtree(folder)
            print(table([row]).split("\n")[-1], file=sys.stderr, flush=True)
            return row

        every = [(each, way) for each in DEFINITIONS for way in ways(each, shlex.split(options.harness), arm64, options.few)]
        rows = list(pool.map(lambda pair: measure(*pair), every))
    if options.save:
        pathlib.Path(options.save).write_text(json.dumps({"rows": rows, "facts": facts}), encoding="utf-8")
    for path in options.add:
        added, place = json.loads(pathlib.Path(path).read_text(encoding="utf-8")), pathlib.Path(path).stem
        rows += [Row(*row)._replace(machine=f"{place}, {Row(*row).machine}") for row in added["rows"]]
        facts |= {f"{place}, {name}": found for name, found in added["facts"].items()}
    rows.sort(key=lambda row: (row.precision != "fp32", row.precision, row.size))
    text, equal = report(rows, facts, emulator, token_count, time.monotonic() - started)
    pathlib.Path(options.output).write_text(text, encoding="utf-8")
    print("\n".join(verdicts(rows)[0]))
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
