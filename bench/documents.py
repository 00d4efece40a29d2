#!/usr/bin/env python3
"""Times `data dedup` and `data mix` beside Dolma's toolkit, in turn, in one run, and compares what both find.

Documents: lines of `data corpus` put together at random, three to fourteen to a document, in eight gzip files. Both programs
take two threads (the toolkit: two processes of its own, which are threads), and read and write the same files. A round: by
document, by paragraph, then a mix that cuts what was found by paragraph out of the texts. "the same": the documents and the
beginnings of paragraphs that both find; the mixed texts, in the same order.

Needs: the wheel of dolma 1.2.1, of which the extension alone is loaded (pip download --no-deps dolma==1.2.1, unpacked), and
       `olmo-harness data fetch`.
Run:   python3 bench/documents.py --binary build/release/olmo-harness --dolma FOLDER_OF_THE_WHEEL --out bench/results/documents.md
"""

import argparse
import glob
import gzip
import json
import multiprocessing
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import datetime
import os

FILES, DOCUMENTS, THREADS = 8, 18000, 2
FILTER = {"include": [], "exclude": ["$.attributes[?(@.found[0][2] > 5.5)]"], "syntax": "jsonpath"}
SPANS = [{"span": "$.attributes.found", "min_score": 0.5, "replacement": "", "syntax": "jsonpath"}]
JOBS = ["dedup by document", "dedup by paragraph", "mix"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/olmo-harness")
    parser.add_argument("--dolma", required=True, help="folder of the unpacked wheel")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def make_documents(binary, folder):
    subprocess.run([binary, "data", "corpus", "--output", folder / "corpus.jsonl.gz"], check=True, capture_output=True)
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"].replace("\n", " ") for line in lines]
    rng, paths, size = random.Random(1), [], 0
    (folder / "documents").mkdir()
    for file in range(FILES):
        paths.append(str(folder / f"documents/{file}.jsonl.gz"))
        with gzip.open(paths[-1], "wt", compresslevel=6, encoding="utf-8") as out:
            for number in range(DOCUMENTS):
                text = "\n".join(rng.choice(texts) for _ in range(rng.randint(3, 14)))
                size += len(text.encode())
                out.write(json.dumps({"id": f"{file}-{number}", "text": text, "source": "corpus"}) + "\n")
    return paths, size


def call_dolma(wheel, entry, config):
    """In a process of its own: the toolkit keeps what it allocated."""
    import importlib.machinery
    import importlib.util

    [path] = glob.glob(f"{wheel}/dolma/dolma.*.so")
    loader = importlib.machinery.ExtensionFileLoader("dolma", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dolma", loader))
    loader.exec_module(module)
    getattr(module, entry)(json.dumps(config))


def timed(work):
    started = time.monotonic()
    work()
    return time.monotonic() - started


def dolma(wheel, entry, config):
    process = multiprocessing.Process(target=call_dolma, args=(wheel, entry, config))
    process.start()
    process.join()
    if process.exitcode != 0:
        sys.exit(f"{entry} ended with {process.exitcode}")


def streams(folder, paths, attributes, output):
    return [{"name": "s", "documents": paths, "attributes": [attributes], "filter": FILTER, "span_replacement": SPANS,
             "output": {"path": str(folder / output), "max_size_in_bytes": 1 << 25}}]


def peer(arguments, folder, paths, job):
    work = {"work_dir": {"input": str(folder / "in"), "output": str(folder / "out")}, "processes": THREADS}
    if job == "mix":
        shutil.rmtree(folder / "theirs", ignore_errors=True)
        return dolma(arguments.dolma, "mixer_entrypoint", {"streams": streams(folder, paths, "found", "theirs"), **work})
    shutil.rmtree(folder / "attributes/theirs", ignore_errors=True)
    (folder / "filter").unlink(missing_ok=True)
    key = {"paragraphs": {"attribute_name": "found"}} if "paragraph" in job else {
        "documents": {"attribute_name": "found", "key": "$.text"}}
    return dolma(arguments.dolma, "deduper_entrypoint", {
        "documents": paths, "dedupe": {"name": "theirs", "skip_empty": True, **key}, **work,
        "bloom_filter": {"file": str(folder / "filter"), "size_in_bytes": 1 << 27, "read_only": False,
                         "estimated_doc_count": 3_000_000, "desired_false_positive_rate": 1e-6}})


def ours(arguments, folder, paths, job):
    command = [arguments.binary, "data"]
    if job == "mix":
        (folder / "mix.json").write_text(json.dumps({"streams": streams(folder, paths, "found", "ours")}))
        command += ["mix", folder / "mix.json"]
    else:
        command += ["dedup", *paths, "--by", job.split()[-1], "--attributes", "found"]
    subprocess.run([*command, "--threads", str(THREADS), "--overwrite"], check=True, capture_output=True)


def lines_of(paths):
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def found(paths, attributes):
    return [(line["id"], span[0]) for line in lines_of(path.replace("/documents/", f"/attributes/{attributes}/") for path in paths)
            for span in line["attributes"].get("found", [])]


def is_same(folder, paths, job):
    """Two processes of the toolkit find other copies of a text, so that only their number is compared there."""
    if job == "mix":
        texts = [[line["text"] for line in lines_of(sorted(map(str, (folder / side).glob("*.gz")), key=lambda path: path.split(".json")[0]))]
                 for side in ("theirs", "ours")]
        return texts[0] == texts[1]
    return len(found(paths, "theirs")) == len(found(paths, "found"))


def main():
    arguments = parse_arguments()
    seconds = {job: {"theirs": [], "ours": []} for job in JOBS}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        paths, size = make_documents(arguments.binary, folder)
        same = {}
        for number in range(arguments.rounds):
            for job in JOBS:
                seconds[job]["ours"].append(timed(lambda: ours(arguments, folder, paths, job)))
                seconds[job]["theirs"].append(timed(lambda: peer(arguments, folder, paths, job)))
                print(f"round {number + 1}, {job}: ours {seconds[job]['ours'][-1]:.1f} s, Dolma's {seconds[job]['theirs'][-1]:.1f} s", flush=True)
                same[job] = is_same(folder, paths, job)
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    report = [
        "# Documents: duplicates and mixes", "",
        f"`python3 bench/documents.py --rounds {arguments.rounds}` on {model}, {os.cpu_count()} cores, {datetime.date.today()}.",
        f"{FILES * DOCUMENTS} documents, {size / 1e6:.0f} MB of text in {FILES} gzip files; {THREADS} threads. Peer: Dolma's toolkit 1.2.1.",
        "Seconds: min / median / max.", "",
        "| job | ours, s | Dolma's toolkit, s | ratio of medians | the same result |", "| --- | --- | --- | --- | --- |"]
    for job, sides in seconds.items():
        cells = {side: " / ".join(f"{value:.1f}" for value in (min(times), statistics.median(times), max(times))) for side, times in sides.items()}
        ratio = statistics.median(sides["theirs"]) / statistics.median(sides["ours"])
        report.append(f"| {job} | {cells['ours']} | {cells['theirs']} | {ratio:.2f} | {'yes' if same[job] else 'no'} |")
    text = "\n".join(report) + "\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
