"""Makes tests/data/data/data_order.json: NumPy's seeding, draws and shuffles, and OLMo's orders, filter and label masks.

    python3 -m pip install "ai2-olmo[train]==0.6.0" numpy torch scikit-learn && python3 tests/goldens/make_data_order.py tests/data/data/data_order.json
"""
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from olmo.config import InstanceFilterConfig
from olmo.data.collator import DataCollator
from olmo.data.iterable_dataset import IterableDataset
from olmo.data.memmap_dataset import MemMapDataset
from olmo.data.util import find_periodic_sequences, get_document_lengths
from olmo.train import Trainer


def listed(indices):
    indices = np.asarray(indices, dtype="<u4")
    return {
        "n": len(indices),
        "first": indices[:12].tolist(),
        "last": indices[-5:].tolist(),
        "sha256": hashlib.sha256(indices.tobytes()).hexdigest(),
    }


def numpy_primitives():
    seeds = [0, 1, 42, 6198, 2**32 - 1, 2**32, 2**40 + 7, 2**63 + 11]
    out = {"seeds": [], "shuffles": []}
    for seed in seeds:
        sequence = np.random.SeedSequence(seed)
        raw = np.random.PCG64(seed).random_raw(4)
        out["seeds"].append({
            "seed": str(seed),
            "state_u32": sequence.generate_state(8, np.uint32).tolist(),
            "state_u64": [str(x) for x in sequence.generate_state(4, np.uint64)],
            "raw": [str(x) for x in raw],
        })
    for seed, n in [(0, 1), (0, 2), (1, 3), (6198, 10), (6198, 1000), (7, 65537), (2**40 + 7, 300000)]:
        values = np.arange(n, dtype=np.uint32)
        np.random.Generator(np.random.PCG64(seed)).shuffle(values)
        out["shuffles"].append({"seed": str(seed), **listed(values)})
    return out


def orders():
    cases = []
    for n, seed, epoch, shuffle in [(100, 0, 0, True), (100, 0, 1, True), (50000, 6198, 3, True)]:
        data = IterableDataset(list(range(n)), 2, seed=seed, epoch=epoch, shuffle=shuffle, drop_last=True, world_size=1, rank=0,
                               fs_local_rank=0, num_threads=0)
        cases.append({"n": n, "seed": seed, "epoch": epoch, "shuffle": shuffle, "order": listed(data.get_global_indices())})
    return cases


def filter_cases():
    rng = np.random.default_rng(11)
    arrays = [[5] * 33, [5] * 6, [1, 2] * 4, [9] + [1, 2, 3] * 4 + [8], [3, 5, 5, 5, 5, 3, 3, 3, 3], [7, 7], [1]]
    for _ in range(60):
        length = int(rng.integers(3, 90))
        array = rng.integers(0, int(rng.integers(2, 40)), length)
        period, times = int(rng.integers(1, 14)), int(rng.integers(2, 40))
        start = int(rng.integers(0, length))
        run = np.tile(rng.integers(0, 50, period), times)[: length - start]
        array[start : start + len(run)] = run
        arrays.append(array.tolist())
    cases = []
    for array in arrays:
        runs = find_periodic_sequences(np.array(array, dtype=np.int64), max_period=13, min_period=1)
        cases.append({
            "ids": array,
            "runs": [[int(r.start), int(r.end), int(r.period), int(r.times)] for r in runs],
        })
    return cases


def documents():
    rng = np.random.default_rng(5)
    arrays = [[3], [7], [7, 7, 7], [3, 4, 5], [3, 7], [7, 3], *(rng.integers(5, 9, int(rng.integers(1, 40))).tolist() for _ in range(20))]
    return [{"ids": ids, "lengths": get_document_lengths(torch.tensor(ids), 7).tolist()} for ids in arrays]


def batches():
    """Token files, label masks and the filter through OLMo's data set, collator and label function."""
    rng = np.random.default_rng(3)
    ids = [rng.integers(0, 40, n).astype("<u2") for n in (87, 48, 15)]
    ids[0][32:64] = 7
    masks = [rng.random(len(x)) < 0.8 for x in ids]
    with tempfile.TemporaryDirectory() as folder:
        paths, mask_paths = [], []
        for i, (tokens, mask) in enumerate(zip(ids, masks)):
            paths.append(Path(folder) / f"{i}.npy")
            mask_paths.append(Path(folder) / f"{i}.mask")
            tokens.tofile(paths[-1])
            mask.tofile(mask_paths[-1])
        data = MemMapDataset(*paths, chunk_size=16, memmap_dtype=np.uint16, pad_token_id=1,
                             label_mask_paths=mask_paths, include_instance_metadata=False,
                             instance_filter_config=InstanceFilterConfig(13, 1, 4))
        order = IterableDataset(data, 2, seed=21, epoch=0, drop_last=True, world_size=1, rank=0, fs_local_rank=0, num_threads=0)
        collate = DataCollator(pad_direction="right", pad_token_id=1)
        items = list(order)
        steps = []
        for first in range(0, len(items) - 1, 2):
            batch = collate(items[first : first + 2])
            steps.append({
                "indices": batch["index"].tolist(),
                "input_ids": batch["input_ids"].tolist(),
                "labels": Trainer.get_labels(None, batch).tolist(),
                "instance_mask": batch["instance_mask"].int().tolist(),
            })
    return {
        "files": [x.tolist() for x in ids], "masks": [x.astype(int).tolist() for x in masks], "sequence_length": 16,
        "global_batch_size": 2, "seed": 21, "repetition_max_count": 4, "instances": len(data), "steps": steps,
    }


golden = {"numpy": np.__version__, "primitives": numpy_primitives(), "orders": orders(), "filter": filter_cases(), "documents": documents(),
          "batches": batches()}
Path(sys.argv[1]).write_text(json.dumps(golden, separators=(",", ":")) + "\n")
