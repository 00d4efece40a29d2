"""Makes tests/data/data/python_text.json: what Python's string methods give (any Python 3.8 to 3.13).

Run: python3 tests/goldens/make_python_text.py
"""

import json
import pathlib
import re

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "data" / "python_text.json"

TEXTS = [
    "", " ", "plain text", "HELLO World", " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0x \u2003\u3000\u2028", "\u200bx\u200b", "ÄRGER über", "éTALE",
    "ßtraSSE", "ﬁSH", "ﬃ", "ŉX", "ǆX ǅ Ǆ", "ᾳΑ", "ΐ", "և", "İSTANBUL", "ıI", "ΟΔΟΣ", "ΟΔΟΣ ΣΑΣ", "Σ", "ΑΣ.", "ΑΣ'Α", "ΑΣ\u00ad", "1Σ", "Α.Σ",
    "ꭰᏸ", "\U00010400\U00010428", "ⅧX", "Ⓐb", "[a] b [c]", "[a[b]c]", "x [a\nb] y [c]", "[[", "]]", "[]", "a]b[c", "[x\n", "日本", "a  b   c    d",
]


def main():
    rows = [{"text": text, "strip": text.strip(), "lstrip": text.lstrip(), "rstrip": text.rstrip(), "lower": text.lower(),
             "capitalize": text.capitalize(), "remove_brackets": re.sub(r"\[.*?\]", "", text), "replace": text.replace("  ", " ")}
            for text in TEXTS]
    OUT.write_text(json.dumps(rows, indent=0) + "\n")


if __name__ == "__main__":
    main()
