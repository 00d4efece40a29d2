"""Writes tests/data/data/tokenizer_small.json and tokenizer_small.golden.jsonl.

A byte-level BPE tokenizer with the parts of OLMo's (NFC, GPT-2 split, normalized and special added tokens) and more
flags of added tokens, trained on words that this script makes up, and what the `tokenizers` library does with texts.
Needs: pip install tokenizers==0.23.3. Run: python3 tests/goldens/make_tokenizer.py
"""

import json
import pathlib
import random

from check_tokenizer import generated_texts
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

OUT = pathlib.Path(__file__).parents[1] / "data/data"
SYLLABLES = ["ba", "co", "du", "fe", "gi", "lo", "mu", "na", "re", "si", "to", "the", "ing", "er", "on", "é", "ö", "я", "日"]
FIXED = [
    "", " ", "  ", "   ", " \n", "\n ", " \n ", "\n\n", "a  b", "a   b", "a \n b ", "trailing   ", "\t\tx", "x\u00a0y", "\u3000x",
    "don't can't we're I'll I've I'd I'm it's", "'s", "''s", "!'s", " 's", "\n's", "\n\n's", "'S 'T", "'sx'rex'llx", "'r 'l 'v 're",
    "x'", "1's", "'s's's", "abc123def", "12 34", " 12", "½Ⅷ٠", "a\u0301 e\u0323\u0302 \u212b \u1e9b\u0323", "\u1100\u1161\u11a8",
    "\u0301start", "a\u0315\u0334b", "\U00011935\U00011930", "a\u0315\u1df6", "\U0001f469\u200d\U0001f467", "\u0000\u0001\u007f",
    "<|end|>", "a<|end|>b", "<|end|><|end|>", "<|end|>\u0301", "<|end", "<|end|", "||MAIL||", "|||MAIL||", "Åbo Å\u0062o A\u030abo",
    "word", "words", "a word", "sword word", "word\u0301", "word_", "word1", "  <left>  ", "a \n<left>b", "  <right>  b",
    "<right>   <right>", "<right>  ", " \u00a0<both>\u3000 ", "<both><both>", "   <both>   <left> x", " " * 7,
]


def training_text(rng: random.Random):
    words = ["".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(300)]
    for _ in range(2000):
        yield " ".join(rng.choice(words) for _ in range(12)) + rng.choice([".", "!", "  ", "\n", "'s", "'re it", " 12", " 365"])


def make_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, special_tokens=["<|end|>", "<|pad|>"], show_progress=False)
    tokenizer.train_from_iterator(training_text(random.Random(1)), trainer)
    tokenizer.add_tokens([
        AddedToken("    ", normalized=True), AddedToken("   ", normalized=True), AddedToken("  ", normalized=True),
        AddedToken("|||MAIL|||", normalized=True), AddedToken("A\u030abo", normalized=True),
        AddedToken("word", single_word=True, normalized=False), AddedToken("<left>", lstrip=True, normalized=False),
        AddedToken("<right>", rstrip=True), AddedToken("<both>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("<ADD>", special=True, normalized=True),
    ])
    return tokenizer


def main() -> None:
    tokenizer = make_tokenizer()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "tokenizer_small.json").write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    texts = FIXED + [text for text in generated_texts(400, 7) if len(text) < 150][:160] + list(training_text(random.Random(2)))[:40]
    with open(OUT / "tokenizer_small.golden.jsonl", "w", encoding="utf-8") as out:
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            record = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "decoded_skip_special": tokenizer.decode(ids, skip_special_tokens=True)}
            out.write(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
