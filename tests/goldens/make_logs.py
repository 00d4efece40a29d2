"""Makes tests/data/import/events.out.tfevents.golden and run-golden.wandb: logs of a few steps, as PyTorch's SummaryWriter and W&B write them.

Needs: pip install torch==2.11.0 tensorboard==2.21.0 wandb==0.31.0. Run: python3 tests/goldens/make_logs.py

W&B's record is written anew from its own messages, without those that tell of this machine; one of its texts is longer than a block.
"""

import os
import pathlib
import shutil
import struct
import tempfile
import zlib

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
import wandb
from torch.utils.tensorboard import SummaryWriter
from wandb.proto import wandb_internal_pb2

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "import"
STEPS, BLOCK, HEAD = 5, 32768, 7


def write_events(folder):
    writer = SummaryWriter(folder)
    for step in range(1, STEPS + 1):
        time = 1.7e9 + step
        writer.add_scalar("loss_metrics/global_avg_loss", 11 - step / 7, step, walltime=time)
        writer.add_scalar("grad_norm", 1 / step, step, walltime=time + 0.25, new_style=True)
        writer.add_scalar("throughput(tps)", 1000 + step, step, walltime=time, new_style=True, double_precision=True)
        writer.add_scalar("n_tokens_seen", 4_500_001 * step, step, walltime=time)
        if step == 3:
            writer.add_scalar("validation_metrics/loss", 9.5, step, walltime=time)
            writer.add_text("note", "not a number", step, walltime=time)
    writer.close()
    events, = pathlib.Path(folder).glob("events.out.tfevents.*")
    shutil.copyfile(events, OUT / "events.out.tfevents.golden")


def pieces_of(data):
    """The entries of LevelDB's log."""
    at, entry = HEAD, b""
    while at < len(data):
        room = BLOCK - at % BLOCK
        if room < HEAD:
            at += room
            continue
        checksum, length, part = struct.unpack_from("<IHB", data, at)
        piece = data[at + HEAD:at + HEAD + length]
        assert checksum == zlib.crc32(piece, zlib.crc32(bytes([part])))
        at, entry = at + HEAD + length, entry + piece
        if part in (1, 4):
            yield entry
            entry = b""


def append(out, entry):
    first = True
    while True:
        room = BLOCK - len(out) % BLOCK
        if room < HEAD:
            out += bytes(room)
            room = BLOCK
        piece, entry = entry[:room - HEAD], entry[room - HEAD:]
        part = (1 if first else 4) if not entry else 2 if first else 3
        out += struct.pack("<IHB", zlib.crc32(piece, zlib.crc32(bytes([part]))), len(piece), part) + piece
        first = False
        if not entry:
            return


def without_machine(record):
    kind = record.WhichOneof("record_type")
    if kind == "run":
        keep = ("run_id", "project", "config", "display_name", "tags", "start_time")
        for field, _ in record.run.ListFields():
            if field.name not in keep:
                record.run.ClearField(field.name)
        record.run.host = "node1"
    return kind in ("header", "run", "history", "config", "exit")


def write_wandb(folder):
    run = wandb.init(project="golden", name="a run", id="golden", dir=folder, tags=["repeat", "side:lumi"], config=dict(seed=6198, optimizer=dict(name="adamw", betas=[0.9, 0.95])))
    for step in range(1, STEPS + 1):
        numbers = {"train/CrossEntropyLoss": 11 - step / 7, "optim/total_grad_norm": float("nan") if step == 2 else 1 / step,
                   "throughput/total_tokens": 10**12 + step, "eval": {"downstream": {"piqa_len_norm": 0.5 + step / 100}}, "note": "text"}
        if step == 4:
            numbers["long"] = "x" * 40000
        run.log(numbers, step=step)
    run.config.update({"max_duration": STEPS})
    run.finish()
    file, = pathlib.Path(folder).glob("wandb/offline-run-*/run-golden.wandb")
    data = file.read_bytes()
    out = bytearray(data[:HEAD])
    environment = wandb_internal_pb2.Record()
    environment.environment.os, environment.environment.host, environment.environment.python = "Linux", "node1", "CPython 3.11.7"
    environment.environment.gpu_type, environment.environment.gpu_count = "NVIDIA A100", 8
    append(out, environment.SerializeToString())
    for entry in pieces_of(data):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(entry)
        if without_machine(record):
            append(out, record.SerializeToString())
    (OUT / "run-golden.wandb").write_bytes(out)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for write in (write_events, write_wandb):
        with tempfile.TemporaryDirectory() as name:
            write(name)
