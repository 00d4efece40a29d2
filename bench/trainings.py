"""What the scripts that time trainings share: shapes and configs, the start of a process and what is known of it
afterwards, the record of a run. No script of its own.
"""

import contextlib
import json
import os
import pathlib
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from array import array

VOCABULARY = 50280
EMBEDDING = 50304
SHAPES = {
    "XS": dict(d_model=64, n_layers=1, n_heads=2, length=32, batch=2),  # to try a script
    "T": dict(d_model=128, n_layers=4, n_heads=4, length=256, batch=8),
    "S": dict(d_model=512, n_layers=8, n_heads=8, length=512, batch=4),
    "M": dict(d_model=768, n_layers=12, n_heads=12, length=1024, batch=2),
    "1B": dict(d_model=2048, n_layers=16, n_heads=16, length=2048, batch=8),  # OLMo-1B, for GPUs
}
STEPS = {"XS": 3, "T": 8, "S": 4, "M": 3, "1B": 8}
# Both of OLMo's ways to mix precisions; the strategy decides which.
PRECISIONS = {
    "fp32": {"precision": "fp32"},
    "mixed": {"precision": "amp_bf16", "distributed_strategy": "fsdp", "fsdp": {"precision": "mixed"}},
    "autocast": {"precision": "amp_bf16", "distributed_strategy": "ddp"},
}


# ---------------------------------------------------------------- running and watching a process


def busy_seconds():
    """Seconds that all processors together were not idle since boot."""
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def watch(command, threads, is_first_step, is_first_done=None, look=None):
    """Runs `command`; returns its output lines, peak memory, times, and what others took of the processors.

    The first step is done when a line says so, or `is_first_done()`. `look(pid)` is called all the time it runs. Times of
    processors and the peak include processes that `command` has started and waited for: of all the sum, and the highest.
    """
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), NO_COLOR="1")
    busy_before, started = busy_seconds(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    lines, first_step, ended = {"stdout": [], "stderr": []}, [], threading.Event()

    def read(name):
        for line in getattr(process, name):
            if not first_step and is_first_step(line):
                first_step.append(time.monotonic() - started)
            lines[name].append(line)

    def poll():
        while not ended.is_set():
            if is_first_done is not None and not first_step and is_first_done():
                first_step.append(time.monotonic() - started)
            if look is not None:
                look(process.pid)
            time.sleep(0.02)

    readers = [threading.Thread(target=read, args=(name,)) for name in lines]
    if is_first_done is not None or look is not None:
        readers.append(threading.Thread(target=poll))
    for reader in readers:
        reader.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended.set()
    for reader in readers:
        reader.join()
    wall = time.monotonic() - started
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{''.join(lines['stderr'])[-3000:]}")
    busy = usage.ru_utime + usage.ru_stime
    others = busy_seconds() - busy_before - busy
    return dict(lines=lines, wall=wall, first_step=first_step[0] if first_step else None,
                busy=busy, peak_mib=usage.ru_maxrss / 1024, others=max(0.0, others / (wall * os.cpu_count())))


# ---------------------------------------------------------------- our own trainings


def make_tokens(folder, shape, sequences=None):
    """Random ones, 16 batches of them unless `sequences` says how many."""
    count = (sequences or 16 * SHAPES[shape]["batch"]) * SHAPES[shape]["length"]
    path = pathlib.Path(folder) / f"tokens-{shape}.npy"  # OLMo's: raw uint16, no header
    path.write_bytes(array("H", random.Random(1).choices(range(VOCABULARY - 1), k=count)).tobytes())
    return path


def our_config(arguments, shape, token_file, steps, settings):
    """`settings`: what differs from one training of a script to the other, as of PRECISIONS."""
    return {
        "run_name": f"training-{shape}",
        "seed": 6198,
        "model": {
            "d_model": SHAPES[shape]["d_model"], "n_layers": SHAPES[shape]["n_layers"],
            "n_heads": SHAPES[shape]["n_heads"], "mlp_ratio": 8, "max_sequence_length": SHAPES[shape]["length"],
            "vocab_size": VOCABULARY, "embedding_size": EMBEDDING, "eos_token_id": 50279, "pad_token_id": 1,
            "activation_type": "swiglu", "block_type": "sequential", "rope": True, "include_bias": False,
            "weight_tying": True, "layer_norm_type": "default", "layer_norm_with_affine": False,
            "attention_layer_norm_with_affine": False, "bias_for_layer_norm": False, "init_fn": "mitchell",
        },
        "optimizer": {"name": "adamw", "learning_rate": 1e-4, "weight_decay": 0.1, "betas": [0.9, 0.95], "eps": 1e-8,
                      "decay_norm_and_bias": True, "decay_embeddings": True},
        "scheduler": {"name": "constant"},
        "data": {"paths": [str(token_file)], "memmap_dtype": "uint16", "drop_last": True},
        "tokenizer": {"identifier": arguments.tokenizer},
        "max_duration": steps,
        "global_train_batch_size": SHAPES[shape]["batch"],
        "device_train_microbatch_size": SHAPES[shape]["batch"],
        "max_grad_norm": 1.0,
        "threads": arguments.threads,
    } | settings


def plan_of(arguments, config, *options):
    """What `train --dry-run --json` says of a training."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        command = [arguments.binary, "train", str(path), "--run-dir", str(pathlib.Path(folder) / "run"), "--dry-run", "--json",
                   *options]
        result = subprocess.run(command, capture_output=True, text=True)
    if not result.stdout.startswith("{"):
        sys.exit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    return json.loads(result.stdout)


def exported(arguments, database, table):
    """The rows of a table of a run database."""
    text = subprocess.run([arguments.binary, "runs", "export", str(database), "--table", table, "--format", "jsonl"],
                          check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines() if line]


def measure_ours(arguments, config, ranks=1, look=None):
    """A training as a process of its own, or as one for each of several ranks."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        run_dir, database = pathlib.Path(folder) / "run", pathlib.Path(folder) / "runs.db"
        step_one = re.compile(r"\bstep 1/\d")  # "computing step 1 ..." comes before it
        result = watch([arguments.binary, "train", str(path), "--run-dir", str(run_dir), "--db", str(database), "--nproc",
                        str(ranks)], config["threads"], step_one.search, look=look)
        rows = sorted(exported(arguments, database, "steps"), key=lambda row: row["step"])
        result["saves"] = [row["seconds"] for row in exported(arguments, database, "checkpoints")]
        result["ranks"] = sorted(exported(arguments, database, "ranks"), key=lambda row: row["rank"])
    result["seconds"] = [row["seconds"] for row in rows]
    result["chain"] = rows[-1]["chain_hash"] if rows else None
    if len(rows) != config["max_duration"]:
        sys.exit(f"expected {config['max_duration']} recorded steps, got {len(rows)}")
    if result["first_step"] is None:  # no line said so: all but the other steps is an upper bound
        result["first_step"] = result["wall"] - sum(result["seconds"][1:])
    return result


# ---------------------------------------------------------------- GPUs


def gpu_name(device):
    """As the driver's own tool says."""
    tools = {"cuda": ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], "rocm": ["rocm-smi", "--showproductname", "--csv"]}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        lines = subprocess.run(tools[device], check=True, capture_output=True, text=True, timeout=60).stdout.split("\n")
        return [line for line in lines if line][-1].strip()
    return "unknown GPU"


def dense_peak(name):
    """Dense bf16 FLOP/s by configs/clusters, of the first device there of which a word with a digit is in `name`; else None."""
    for path in sorted((pathlib.Path(__file__).parent.parent / "configs/clusters").glob("*.json")):
        cluster = json.loads(path.read_text())
        models = [word.strip(",") for word in cluster.get("device", "").split() if re.fullmatch(r"[A-Z]+\d+[A-Z]*,?", word)]
        if cluster.get("peak_flops") and any(model in name for model in models):
            return float(cluster["peak_flops"])
    return None


# ---------------------------------------------------------------- tables


def spread(values, digits=0):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{low:.{digits}f} / {middle:.{digits}f} / {high:.{digits}f}"


def processor():
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def publish(text, out):
    """Prints a report, and writes it to the file `out`, if there is one."""
    print(text)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
