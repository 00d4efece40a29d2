"""Reads a checkpoint with h5py alone and checks what a person would rely on.

    pip install h5py numpy
    python3 tests/goldens/check_h5py.py RUN/step100

Every dataset must have the SHA-256 of its attribute and of the manifest, lie contiguously where the manifest says, and the
JSON texts must parse. Run by hand after a change of the format; the tests of the binary do not need Python.
"""

import hashlib
import json
import pathlib
import sys

import h5py
import numpy as np


def main(folder: pathlib.Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    with h5py.File(folder / "checkpoint.h5", "r") as file:
        # Texts have a fixed length (sealing a file changes them in place): h5py gives bytes.
        attributes = {key: value.decode() if isinstance(value, bytes) else value for key, value in file.attrs.items()}
        assert attributes["format"] == "olmo-harness-checkpoint", attributes
        assert attributes["complete"] == 1
        assert attributes["step"] == manifest["step"] == file["trainer"].attrs["step"]
        assert attributes["kind"] == manifest["kind"]
        found = set()
        file.visititems(lambda name, item: found.add("/" + name) if isinstance(item, h5py.Dataset) else None)
        listed = manifest["files"][0]["datasets"]
        assert found == {entry["path"] for entry in listed}, found
        for entry in listed:
            dataset = file[entry["path"]]
            data = dataset[()]
            raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
            digest = hashlib.sha256(raw).hexdigest()
            assert digest == entry["sha256"] == dataset.attrs["sha256"].decode(), entry["path"]
            assert dataset.chunks is None and len(raw) == entry["bytes"]
            if len(raw) > 0:
                assert dataset.id.get_offset() == entry["offset"], entry["path"]
            if entry["dtype"] == "json":
                json.loads(raw)
            else:
                assert str(dataset.dtype) == entry["dtype"] and list(dataset.shape) == entry["shape"]
        name = next(iter(file["model"]))
        print(f"{len(listed)} datasets are as the manifest says; /data {dict(file['data'].attrs)}; "
              f"f['model']['{name}'] is {file['model'][name].dtype} {file['model'][name].shape}")


main(pathlib.Path(sys.argv[1]))
