#!/usr/bin/env python3
"""Writes tests/data/data/dolma/: documents, and what Dolma's toolkit makes of them.

documents/, attributes/   two files of documents, and what two invented taggers say of them
filters.jsonl             JSONPaths, each with the documents that `dolma mix` takes by it as its one include
mix.json, mixed.jsonl     a config of `dolma mix` and its output
duplicates.json           by document, paragraph and field: the documents, or [document, character], that `dolma dedupe` finds

Texts are such that the toolkit's own slips (docs/corpus.md) do not show: no score in a filter is a
whole number, and no paragraph is blank.

Needs: the wheel of dolma 1.2.1, of which the extension alone is loaded (pip download --no-deps dolma==1.2.1, unpacked).
Run:   python3 tests/goldens/make_dolma.py FOLDER_OF_THE_WHEEL
"""

import glob
import importlib.machinery
import importlib.util
import json
import pathlib
import random
import sys
import tempfile

OUT = pathlib.Path(__file__).parent.parent / "data" / "data" / "dolma"
OUTPUT = {"discard_fields": ["source"], "min_text_length": 20}
WORDS = "owl barn night field é 日本 mouse quiet feather moon".split()


def load_dolma(folder):
    [path] = glob.glob(f"{folder}/dolma/dolma.*.so")
    loader = importlib.machinery.ExtensionFileLoader("dolma", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dolma", loader))
    loader.exec_module(module)
    return module


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def make_spans(random_numbers, text):
    spans = []
    for _ in range(random_numbers.randint(0, 3)):
        begin = random_numbers.randint(0, len(text) - 2)
        spans.append([begin, random_numbers.randint(begin + 1, len(text)), random_numbers.choice([0.25, 0.5, 0.75])])
    return spans


def make_documents(folder, random_numbers):
    number = 0
    paragraphs = [" ".join(random_numbers.choices(WORDS, k=4)) for _ in range(8)]
    for name in ("a.jsonl", "b.jsonl"):
        documents, first, second = [], [], []
        for _ in range(14):
            number += 1
            text = "\n".join(random_numbers.choices(paragraphs, k=random_numbers.randint(1, 3)))
            document = {"id": f"d{number}", "text": text, "source": "invented",
                        "metadata": {"url": f"http://{random_numbers.randint(1, 9)}", "length": len(text)}}
            documents.append(document)
            first.append({"id": document["id"], "attributes": {"spans": make_spans(random_numbers, text)}})
            tags = {}
            if random_numbers.random() < 0.8:
                tags["score"] = [[0, len(text), random_numbers.choice([0.1, 0.5, 0.9])]]
            if random_numbers.random() < 0.6:
                tags["flag"] = random_numbers.choice([True, False, None, "en", "de", {"k": 1}, [0.5, 2.5]])
            if random_numbers.random() < 0.3:
                tags["a key"] = random_numbers.choice(["x", 0.5])
            second.append({"id": document["id"], "attributes": tags})
        write_lines(folder / "documents" / name, documents)
        write_lines(folder / "attributes/first" / name, first)
        write_lines(folder / "attributes/second" / name, second)


def make_condition(random_numbers, depth=0):
    kind = random_numbers.random()
    if depth == 3 or kind < 0.4:
        sign = random_numbers.choice(["<", "<=", ">", ">=", "==", "!="])
        return random_numbers.choice([
            f"@.score[0][2] {sign} 0.5", f"@.spans[1][2] {sign} 25e-2", f"@.spans[0][0] {sign} @.spans[1][0]",
            "@.spans[0]", "@.score", "@.flag", "@.flag == true", "@.flag != 'en'", "@.flag == null", "@.flag.k",
            "@.flag[1] >= 2.5", "@['a key'] == 'x'", "$.source == 'invented'", "@.nothing == @.nothing_else"])
    part = lambda: make_condition(random_numbers, depth + 1)
    if kind < 0.6:
        return f"{part()} && {part()}"
    if kind < 0.75:
        return f"{part()} || {part()}"
    return f"({part()})" if kind < 0.88 else f"!({part()})"


def make_path(random_numbers):
    condition = make_condition(random_numbers)
    return random_numbers.choice([
        f"$.attributes[?({condition})]", f"$@.attributes[?({condition})]", f"$.attributes[?({condition})]",
        "$.metadata[?(@.length < 40)]", "$.attributes.flag", "$.attributes['a key']",
        "$.attributes.spans[?(@[2] > 0.25)]", "$.attributes.spans[?(@[2] > 0.25 && @[0] < 9)]",
        "$.attributes.spans[?(!(@[2] > 0.25))]", "$.attributes.spans[*][?(@ > 12)]", "$.attributes.flag.*"])


def stream(folder, output, rules):
    return {"name": "s", "documents": [f"{folder}/documents/{name}" for name in ("a.jsonl", "b.jsonl")],
            "attributes": ["first", "second"], "compression": {"input": None, "output": ""},
            "output": {"path": str(output), "max_size_in_bytes": 1 << 30, **OUTPUT}, **rules}


def mix(dolma, folder, scratch, rules):
    output = scratch / "mixed"
    for path in output.glob("*"):
        path.unlink()
    work = {"input": str(scratch / "input"), "output": str(scratch / "output")}
    dolma.mixer_entrypoint(json.dumps({"streams": [stream(folder, output, rules)], "work_dir": work, "processes": 1}))
    [path] = output.glob("*")
    return read_lines(path)


def dedupe(dolma, folder, scratch, rules):
    work = {"input": str(scratch / "input"), "output": str(scratch / "output")}
    config = {"documents": [f"{folder}/documents/{name}" for name in ("a.jsonl", "b.jsonl")], "work_dir": work,
              "processes": 1, "dedupe": {"name": "duplicates", "skip_empty": True, **rules},
              "bloom_filter": {"file": str(scratch / "filter"), "size_in_bytes": 1 << 22, "read_only": False,
                               "estimated_doc_count": 1000, "desired_false_positive_rate": 1e-9}}
    dolma.deduper_entrypoint(json.dumps(config))
    found = [line for name in ("a.jsonl", "b.jsonl") for line in read_lines(folder / "attributes/duplicates" / name)]
    for path in [scratch / "filter", *(folder / "attributes/duplicates").glob("*")]:
        path.unlink()
    return [(line["id"], span[0]) for line in found for span in line["attributes"].get("x", [])]


def main():
    dolma = load_dolma(sys.argv[1])
    random_numbers = random.Random(6198)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        folder = scratch / "corpus"
        make_documents(folder, random_numbers)
        paths = sorted({make_path(random_numbers) for _ in range(250)})
        filters = [{"path": path, "documents": [line["id"] for line in mix(
            dolma, folder, scratch, {"filter": {"include": [path], "exclude": []}})]} for path in paths]
        rules = {"filter": {"include": [], "exclude": ["$.attributes[?(@.score[0][2] >= 0.75)]"]},
                 "span_replacement": [
                     {"span": "$.attributes.spans", "min_score": 0.5, "replacement": "<{}>"},
                     {"span": "$.attributes.score", "max_score": 0.25, "replacement": ""}]}
        mixed = mix(dolma, folder, scratch, rules)
        config = {"streams": [stream("DATA", "OUTPUT", rules)]}
        by_document = {"documents": {"attribute_name": "x", "key": "$.text"}}
        by_url = {"documents": {"attribute_name": "x", "key": "$.metadata.url"}}
        duplicates = {
            "document": [name for name, _ in dedupe(dolma, folder, scratch, by_document)],
            "metadata.url": [name for name, _ in dedupe(dolma, folder, scratch, by_url)],
            "paragraph": dedupe(dolma, folder, scratch, {"paragraphs": {"attribute_name": "x"}})}
        for path in sorted(folder.rglob("*.jsonl")):
            write_lines(OUT / path.relative_to(folder), read_lines(path))
    write_lines(OUT / "filters.jsonl", filters)
    (OUT / "mix.json").write_text(json.dumps(config, indent=1) + "\n")
    write_lines(OUT / "mixed.jsonl", mixed)
    (OUT / "duplicates.json").write_text(json.dumps(duplicates) + "\n")


if __name__ == "__main__":
    main()
