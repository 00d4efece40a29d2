"""Writes tests/data/data/tokenizer_{small,cl100k}.json and their .golden.jsonl.

Byte-level BPE tokenizers trained on words that this script makes up, and what the `tokenizers` library does with texts:
`small` has the parts of OLMo 1's (NFC, GPT-2 split, normalized and special added tokens) and more flags of added tokens;
`cl100k` has the parts of OLMo 2's (cl100k_base's split) and ignores merges, of which it lacks some (`merging`: the ids
if it did not ignore them).
Needs: pip install tokenizers==0.23.3. Run: python3 tests/goldens/make_tokenizer.py
"""

import json
import pathlib
import random

from check_tokenizer import generated_texts
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

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

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K_FIXED = FIXED + [
    "'S 'T 'RE 'rE 'Re 'LL 'lL 'Ve 'M 'D", "'\u017f", "x'\u017fa", "'\u017f\u017f", "'\u00df '\ufb06 '\ufb05", "'l\u017f 'r\u017f",
    "1 12 123 1234 123456789", "١٢٣٤ \u00bd\u2167\u0662\u0663", "(word", "-word", "--word", " -word", "\tword", "\u00a0word", "\u3000!", "\u00a0!",
    "!\n", "!\r\n\r\nx", " !\n \n", "!'s\n", "a!\n\n  b", "a \n\n  b", "a\n \n\n b", "\n  ", " \r\n ", "\r\r\n", "\n" * 9, " \n" * 40 + " x",
    "a\u0301b", "\u0301b", "!\u0301b", "\U0001f469\u200d\U0001f467a", "\U0001f469a", "<|end|>\n\n<|end|>'s", "\x85\n", "\x0b\x0c x", "\u2028x",
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


def make_cl100k() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(CL100K), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(training_text(random.Random(3)), trainer)
    file = json.loads(tokenizer.to_str())
    file["model"]["ignore_merges"] = True
    file["model"]["merges"] = [merge for i, merge in enumerate(file["model"]["merges"]) if i % 5 != 4]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_special_tokens([AddedToken("<|end|>", normalized=False, special=True)])
    tokenizer.add_tokens([AddedToken("|||MAIL|||", normalized=False)])
    return tokenizer


def write(name: str, tokenizer: Tokenizer, texts, more=None) -> None:
    (OUT / f"tokenizer_{name}.json").write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    with open(OUT / f"tokenizer_{name}.golden.jsonl", "w", encoding="utf-8") as out:
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            record = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "decoded_skip_special": tokenizer.decode(ids, skip_special_tokens=True)}
            if more is not None:
                record["merging"] = more.encode(text, add_special_tokens=False).ids
            out.write(json.dumps(record, separators=(",", ":")) + "\n")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    texts = [text for text in generated_texts(400, 7) if len(text) < 150][:160] + list(training_text(random.Random(2)))[:40]
    write("small", make_tokenizer(), FIXED + texts)
    tokenizer = make_cl100k()
    merging = json.loads(tokenizer.to_str())
    merging["model"]["ignore_merges"] = False
    write("cl100k", tokenizer, CL100K_FIXED + texts, Tokenizer.from_str(json.dumps(merging)))


if __name__ == "__main__":
    main()
