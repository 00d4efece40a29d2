#!/usr/bin/env python3
"""Times `data tokenize` beside Dolma's toolkit (`dolma tokens`), in turn, in one run, and compares the token files of both.

Texts: those of `data corpus`, and 3,000 of invented pieces that are hard for a tokenizer: special tokens, control characters, other scripts, blanks, ids
with commas and quotes. One thread (one process) each. The toolkit shuffles the documents of a batch: files of the corpus are compared document by
document. For the hard texts a batch is one document, so that files and indexes have one order and are compared whole.

Needs: pip install --no-deps dolma==1.2.1 s3fs, and pip install 'tokenizers<=0.19.1' 'numpy<2' msgspec smart-open omegaconf necessary
       zstandard platformdirs fsspec pyyaml python-dotenv requests rich tqdm uniseg charset-normalizer anyascii jq jsonpath-ng
       nltk boto3 blingfire (its taggers need fasttext, which has no wheel and is not used here), and `olmo-harness data fetch`.
Run:   python3 bench/token_files.py --binary build/release/olmo-harness --out bench/results/token_files.md
"""

import argparse
import csv
import datetime
import gzip
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

EOS, DTYPE = 50279, "uint16"
PIECES = ["hello world", "<|endoftext|>", "<|padding|>", "|||IP_ADDRESS|||", "|||EMAIL_ADDRESS|||", "\n\n", "\t", "  ", "     x", "é", "漢字", "👩‍👩‍👧",
          "\u200b", "\u0301", "don't", "I'll", "'S", "1234567", "\r\n", "\u2028", "\u00a0", " \n ", "A" * 300, "ﬁ", "İ", "ß", "\x00", "\x7f", "0x1F", "———", "ا", "ท", "𝔘"]
IDS = ['d{}', 'with, comma and "quotes" {}', "ü{}", ""]
CALL = "import sys\nif __name__ == '__main__':\n    from dolma.cli.__main__ import main\n    main()\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/olmo-harness")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def write_hard_texts(path):
    rng = random.Random(5)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number in range(3000):
            text = rng.choice(["", " ", "\n"]).join(rng.choice(PIECES) for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 20, 60])))
            document = {"id": rng.choice(IDS).format(number), "text": text, "source": "pieces"}
            file.write(json.dumps(document, ensure_ascii=rng.random() < 0.5) + "\n")


def prepare_dolma(folder):
    """A script that calls the toolkit, and beside it an empty fasttext: `dolma` imports all of its taggers, also for `tokens`."""
    (folder / "fasttext").mkdir()
    (folder / "fasttext" / "__init__.py").write_text("train_supervised = load_model = None\n")
    (folder / "fasttext" / "FastText.py").write_text("_FastText = None\n")
    (folder / "call.py").write_text(CALL)
    return [sys.executable, folder / "call.py", "tokens"]


def run(command):
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    start = time.monotonic()
    subprocess.run(list(map(str, command)), check=True, capture_output=True, env=environment)
    return time.monotonic() - start


def run_here(options, tokenizer, documents, output):
    return run([options.binary, "data", "tokenize", documents, "--tokenizer", tokenizer, "--output", output, "--threads", 1])


def run_dolma(call, tokenizer, documents, folder, *batch):
    return run([*call, "--documents", documents, "--destination", folder, "--tokenizer.name_or_path", tokenizer, "--tokenizer.eos_token_id", EOS,
                "--tokenizer.pad_token_id", 1, "--dtype", DTYPE, "--processes", 1, "--seed", 1, *batch])


def by_place(tokens, index):
    """Of each line of the documents' file: its id, and its tokens."""
    tokens = numpy.fromfile(tokens, dtype=DTYPE)
    with gzip.open(index, "rt", encoding="utf-8", newline="") as rows:
        return {int(line): (id, tokens[int(first):int(end)].tobytes()) for first, end, id, _, line in csv.reader(rows)}


def compare_corpus(options, call, tokenizer, folder):
    corpus = folder / "corpus.jsonl.gz"
    run([options.binary, "data", "corpus", "--output", corpus])
    seconds = {"ours": [], "theirs": []}
    for number in range(options.rounds):
        here, there = folder / f"here{number}.npy", folder / f"there{number}"
        seconds["ours"].append(run_here(options, tokenizer, corpus, here))
        seconds["theirs"].append(run_dolma(call, tokenizer, corpus, there))
        print(f"round {number + 1}: ours {seconds['ours'][-1]:.1f} s, Dolma's {seconds['theirs'][-1]:.1f} s", flush=True)
    [index] = there.glob("*.csv.gz")
    ours, theirs = by_place(here, here.with_suffix(".csv.gz")), by_place(index.with_name(index.name.replace(".csv.gz", ".npy")), index)
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        size = sum(len(json.loads(line)["text"].encode()) for line in lines)
    return seconds, size, len(ours), ours == theirs


def compare_hard_texts(options, call, tokenizer, folder):
    documents, here, there = folder / "hard.jsonl.gz", folder / "hard.npy", folder / "hard"
    write_hard_texts(documents)
    run_here(options, tokenizer, documents, here)
    run_dolma(call, tokenizer, documents, there, "--batch_size", 1, "--ring_size", 1)
    [index] = there.glob("*.csv.gz")
    read = lambda path: gzip.decompress(path.read_bytes())
    same = read(index) == read(here.with_suffix(".csv.gz"))
    return here.stat().st_size, same and index.with_name(index.name.replace(".csv.gz", ".npy")).read_bytes() == here.read_bytes()


def main():
    options = parse_arguments()
    options.binary = pathlib.Path(options.binary).resolve()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    [tokenizer] = cache.glob("olmo-harness/data/*/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        call = prepare_dolma(folder)
        seconds, size, documents, same = compare_corpus(options, call, tokenizer, folder)
        hard_size, hard_same = compare_hard_texts(options, call, tokenizer, folder)
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    cells = {side: " / ".join(f"{value:.1f}" for value in (min(times), statistics.median(times), max(times))) for side, times in seconds.items()}
    ratio = statistics.median(seconds["theirs"]) / statistics.median(seconds["ours"])
    answer = lambda same: "yes" if same else "**no**"
    text = "\n".join([
        "# Token files", "",
        f"`python3 bench/token_files.py --rounds {options.rounds}` on {model}, {os.cpu_count()} cores, {datetime.date.today()}.",
        f"Peer: `dolma tokens` of Dolma's toolkit 1.2.1, with the tokenizer of OLMo 1. One thread each; seconds: min / median / max.", "",
        "| texts | ours, s | Dolma's toolkit, s | ratio of medians | the same |", "| --- | --- | --- | --- | --- |",
        f"| {documents} of `data corpus`, {size / 1e6:.0f} MB | {cells['ours']} | {cells['theirs']} | {ratio:.1f} | {answer(same)}: each document's tokens, id and line |",
        f"| 3000 hard ones, {hard_size / 1e3:.0f} kB of tokens | | | | {answer(hard_same)}: the token file and its index, byte for byte |", ""])
    print(text)
    if options.out:
        options.out.write_text(text)
    sys.exit(0 if same and hard_same else 1)


if __name__ == "__main__":
    main()
