"""Writes src/data/tokenizer/unicode_runs.cpp: what the `tokenizers` library does with each code point, found by asking it.

Its parts follow different Unicode versions (the split's regex 16, the normalizer 9-10), so no one library's tables
would give the same ids. Needs: pip install tokenizers==0.23.3. Run: python3 tests/goldens/make_unicode_runs.py
"""

import pathlib
import unicodedata

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

OTHER, LETTER, NUMBER, SPACE = 0, 1, 2, 3
NFC_UNSAFE, NFC_JOINS, WORD = 4, 8, 16
SURROGATES = range(0xD800, 0xE000)

split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
nfc, nfd = normalizers.NFC(), normalizers.NFD()


def split_class(c: str) -> int:
    if len(split.pre_tokenize_str("a" + c)) == 1:
        return LETTER
    if len(split.pre_tokenize_str("1" + c)) == 1:
        return NUMBER
    return OTHER if len(split.pre_tokenize_str("!" + c)) == 1 else SPACE


def tokenizer_with(token: AddedToken) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab={"x": 0}, merges=[]))
    tokenizer.add_tokens([token])
    return tokenizer


single_word = tokenizer_with(AddedToken("@", single_word=True, normalized=False))
rstrip = tokenizer_with(AddedToken("@", rstrip=True, normalized=False))


def flags_of(code: int) -> int:
    c = chr(code)
    flags = split_class(c)
    is_space = len(rstrip.encode("@" + c, add_special_tokens=False).tokens[0]) == 2 if c != "@" else False
    assert is_space == (flags == SPACE), hex(code)  # one kind of white space serves both
    if nfd.normalize_str(c) != c:
        flags |= NFC_JOINS
        starter = nfc.normalize_str(c) == c  # no composed character that stays has a combining class
    else:
        starter = nfd.normalize_str("a\u0315" + c + "\u0334").endswith("\u0334")
    if not starter or nfc.normalize_str(c) != c:
        flags |= NFC_UNSAFE
    if c != "@" and "@" not in single_word.encode(c + "@", add_special_tokens=False).tokens:
        flags |= WORD
    return flags


def main() -> None:
    flags = [0 if code in SURROGATES else flags_of(code) for code in range(0x110000)]
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and "<" not in parts[0]:
            first, second = (int(part, 16) for part in parts)
            if nfc.normalize_str(chr(first) + chr(second)) == chr(code):
                flags[first] |= NFC_JOINS
                flags[second] |= NFC_UNSAFE
    for code in range(0x1100, 0x1113):  # Hangul leading consonants join a vowel, vowels and trailing ones are joined
        flags[code] |= NFC_JOINS
    for code in [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]:
        flags[code] |= NFC_UNSAFE
    runs = [(code, flags[code]) for code in range(0x110000) if code == 0 or flags[code] != flags[code - 1]]
    text, last = "", 0
    for code, flag in runs:
        text += (f"{code - last:x}" if code != last else "") + chr(ord("A") + flag)
        last = code
    lines = [text[at : at + 96] for at in range(0, len(text), 96)]
    out = pathlib.Path(__file__).parents[2] / "src/data/tokenizer/unicode_runs.cpp"
    out.write_text(
        f"// Made by tests/goldens/make_unicode_runs.py from tokenizers {tokenizers.__version__}; not edited by hand.\n"
        '#include "data/tokenizer/unicode_table.h"\n\nnamespace olmo::data {\n\n'
        'std::string_view unicode_runs() {\n  return R"(\n' + "\n".join(lines) + '\n)";\n}\n\n}  // namespace olmo::data\n'
    )


if __name__ == "__main__":
    main()
