#!/usr/bin/env python3
"""Counts the instructions of the loops that carry a kernel's fused multiply-adds, for check_gpu_kernels.sh.

    gpu_loops.py sass FILE KERNEL...      FILE: what `nvdisasm -c` prints of a cubin
    gpu_loops.py amdgcn FILE KERNEL...    FILE: assembly of clang for AMD's GPUs

Prints a row of a Markdown table for each such loop. Of a loop it counts what runs where matrices are aligned and tiles
full: not the loops inside it, nor the blocks that load elements one by one. What a block that is not taken in every
turn holds is counted, so a share is rather too low than too high.
"""
import re
import sys
from collections import Counter

SASS = {
    "function": r"\.text\.(\w+):", "label": r"(\.L_x_\d+):", "jump": r"BRA\b.*?(\.L_x_\d+)",
    "instruction": r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);",
    "multiply_add": r"FFMA", "narrow_load": r"LDG(?!.*\.(64|128))",
    "wide": {"128": r"\.128", "64": r"\.64"}, "kinds": {"LDS": r"LDS", "STS": r"STS", "LDG": r"LDG"},
}
AMDGCN = {
    "function": r"(olmo_\w+):", "label": r"(\.LBB\d+_\d+):", "jump": r"s_c?branch\S*\s+(\.LBB\d+_\d+)",
    "instruction": r"\t([a-z]\w+)(.*)",
    "multiply_add": r"v_(pk_)?fma(c|mk|ak)?_f32", "narrow_load": r"(global|flat)_load_(dword\b|ushort|short|u?byte)",
    "wide": {"128": r"_(b128|dwordx4)|read2_b64|write2_b64", "64": r"_(b64|dwordx2)|read2_b32|write2_b32"},
    "kinds": {"LDS": r"ds_read", "STS": r"ds_write", "LDG": r"(global|flat)_load"},
}
LEAST = 48  # multiply-adds of a block that is reported


def functions(lines, syntax):
    """Name -> list of (label or None, instruction text)."""
    found, name = {}, None
    for line in lines:
        if m := re.match(syntax["function"], line):
            name = m[1]
            found[name] = []
        elif name and (m := re.match(syntax["label"], line)):
            found[name].append((m[1], ""))
        elif name and (m := re.match(syntax["instruction"], line)):
            if m[1] == "s_endpgm":
                found[name].append((None, m[1]))
                name = None
                continue
            found[name].append((None, m[1] + m[2]))
    return found


def blocks_of(code, syntax):
    """Straight runs as (first, last + 1), and loops as the ranges that jumps back span."""
    labels = {label: i for i, (label, _) in enumerate(code) if label}
    cuts, loops = {0, len(code)}, set()
    for i, (label, text) in enumerate(code):
        if label:
            cuts.add(i)
        elif m := re.match(syntax["jump"], text):
            cuts.add(i + 1)
            if labels.get(m[1], i + 1) <= i:
                loops.add((labels[m[1]], i + 1))
    cuts = sorted(cuts)
    return list(zip(cuts, cuts[1:])), loops


def count(texts, syntax):
    counts = Counter()
    for text in texts:
        if re.match(syntax["multiply_add"], text):
            counts["FMA"] += 2 if "_pk_" in text.split()[0] else 1
            counts["FMA instructions"] += 1
            continue
        for kind, pattern in syntax["kinds"].items():
            if re.match(pattern, text):
                width = next((w for w, p in syntax["wide"].items() if re.search(p, text.split()[0])), "32")
                counts[f"{kind}.{width}"] += 1
    return counts


def report(name, code, syntax):
    blocks, loops = blocks_of(code, syntax)
    texts = [text for _, text in code]
    seen = set()
    for first, last in blocks:
        if sum(bool(re.match(syntax["multiply_add"], t)) for t in texts[first:last]) < LEAST:
            continue
        around = [loop for loop in loops if loop[0] <= first and last <= loop[1]]
        if not around:
            continue
        loop = min(around, key=lambda l: l[1] - l[0])
        inner = [l for l in loops if l != loop and loop[0] <= l[0] and l[1] <= loop[1]]
        if loop in seen or any(l[0] <= first and last <= l[1] for l in inner):
            continue
        seen.add(loop)
        kept = []
        for b in blocks:
            inside = loop[0] <= b[0] and b[1] <= loop[1]
            nested = any(l[0] <= b[0] and b[1] <= l[1] for l in inner)
            narrow = any(re.match(syntax["narrow_load"], t) for t in texts[b[0]:b[1]])
            if inside and not nested and not narrow:
                kept += [t for t in texts[b[0]:b[1]] if t]
        c = count(kept, syntax)
        if c["LDS.128"] == 0:
            continue  # exponentials
        wide = " | ".join(str(c[f"{kind}.{w}"]) for kind in ("LDS", "STS", "LDG") for w in ("128", "64", "32"))
        share = 100 * c["FMA instructions"] / len(kept)
        print(f"| `{name}` | {len(kept)} | {c['FMA']} | {share:.0f} % | {wide} |")


def main():
    syntax = {"sass": SASS, "amdgcn": AMDGCN}[sys.argv[1]]
    with open(sys.argv[2], encoding="utf-8", errors="replace") as file:
        found = functions(file, syntax)
    for name in sys.argv[3:]:
        report(name, found.get(name, []), syntax)


main()
