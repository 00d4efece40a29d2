"""Writes tests/data/data/added_tokens.json: where the `tokenizers` library finds added tokens in texts.

The tokens have random flags and lie close together: white space as a token, one inside another, one in the white space that
another takes. Texts with which the library panics are left out. A part is [text, id], the id null between tokens.
Needs: pip install tokenizers==0.23.3. Run: python3 tests/goldens/make_added_tokens.py
"""

import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer, models

OUT = pathlib.Path(__file__).parents[1] / "data/data/added_tokens.json"
CONTENTS = ["\n", "\t", "  ", "ab", "abc", "x", "x ", " x", "\u3000x", "<s>", "<s>ab", "\u00e9", "word"]
BETWEEN = ["", "", " ", "  ", "\n", "\u00a0", "\u3000", "x", "z", "Q", "7", "_", "-", "\u0301", "\u65e5"]
FLAGS = ["single_word", "lstrip", "rstrip"]


def random_token(rng: random.Random, content: str) -> AddedToken:
    return AddedToken(content, normalized=False, **{flag: rng.random() < 0.4 for flag in FLAGS})


def make_case(rng: random.Random):
    tokens = [random_token(rng, content) for content in rng.sample(CONTENTS, 3)]
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))  # what lies between tokens is one "?"
    tokenizer.add_tokens(tokens)
    text = "".join(rng.choice(tokens).content + rng.choice(BETWEEN) for _ in range(6))
    encoding = tokenizer.encode(text, add_special_tokens=False)
    parts = [[text[slice(*offsets)], number or None] for number, offsets in zip(encoding.ids, encoding.offsets, strict=True)]
    flags = [{"content": token.content, **{flag: getattr(token, flag) for flag in FLAGS}} for token in tokens]
    return {"tokens": flags, "text": text, "parts": parts}


def main() -> None:
    rng, cases = random.Random(5), []
    while len(cases) < 60:
        try:
            cases.append(make_case(rng))
        except BaseException as error:  # a panic of the library is no Exception
            assert "bad split" in str(error), error
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    OUT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
