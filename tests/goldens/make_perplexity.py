"""Makes tests/data/eval/perplexity.json: windows, word counts and aggregated metrics of perplexity evaluation by lm-eval (whose window functions
Catwalk carries too) and OLMo's in-loop evaluator.

    python3 -m pip install lm_eval==0.4.13 "ai2-olmo[train]==0.6.0" && python3 tests/goldens/make_perplexity.py tests/data/eval/perplexity.json
"""
import json
import random
import re
import sys
from collections import defaultdict

import torch
from lm_eval.api.metrics import bits_per_byte, weighted_perplexity
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from olmo.config import EvaluatorType
from olmo.eval.evaluator import Evaluator
from torchmetrics import MeanMetric

EOS = 7


def windows():
    out = []
    for max_length in [1, 2, 3, 8, 50]:
        for count in [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 25, 50, 51]:
            ids = list(range(100, 100 + count))
            pairs = map(make_disjoint_window, get_rolling_token_windows(ids, EOS, max_length, 1))
            cut = [[context + continuation, len(continuation)] for context, continuation in pairs]
            out.append({"max_length": max_length, "ids": count, "windows": cut})
    return out


def texts():
    spaces = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and re.match(r"\s", chr(c))]
    near = ["\u200b", "\ufeff", "\u180e", "\u2060", "\x08", "\x0e", "\x1b", "\x7f", "\x84", "\x86"]
    samples = ["", " ", "one", " one", "one ", "one two", "one \t\n two", "\n\n", "déjà vu", "日本語 の　文", "a\u00a0b", "😀 😀", "don't stop-now"]
    samples += [f"a{space}b{space}{space}" for space in spaces] + [f"a{c}b" for c in near]
    return [{"text": t, "bytes": len(t.encode("utf-8")), "chars": len(t), "words": len(re.split(r"\s+", t))} for t in samples]


def documents():
    draw = random.Random(6198)
    rows = []
    for source, subdomain, count in [("a", "x", 5), ("a", "y", 1), ("a", "z", 9), ("b", "", 7), ("c", "x", 2), ("c", "empty", 2), ("d", "huge", 2)]:
        for _ in range(count):
            tokens = 0 if subdomain == "empty" else draw.randint(1, 400)
            chars = tokens * draw.randint(2, 5)
            per_token = 1500.0 if subdomain == "huge" else draw.uniform(0.5, 6.0)
            rows.append({"source": source, "subdomain": subdomain, "nll": tokens * per_token, "tokens": tokens, "bytes": chars + draw.randint(0, tokens),
                         "chars": chars, "words": 1 + tokens // 2})
    draw.shuffle(rows)
    return rows


def guarded(function, items):
    """Catwalk's rule for what cannot be represented."""
    try:
        return function(items)
    except OverflowError:
        return 1e30


def lm_eval_metrics(rows):
    def per(unit):
        return [(-row["nll"], row[unit]) for row in rows]

    return {"ppl": guarded(weighted_perplexity, per("tokens")), "ppl_byte": guarded(weighted_perplexity, per("bytes")),
            "ppl_char": guarded(weighted_perplexity, per("chars")), "ppl_word": guarded(weighted_perplexity, per("words")),
            "bpb": bits_per_byte(per("bytes"))}


def macro(groups):
    return {name: sum(group[name] for group in groups) / len(groups) for name in groups[0]}


def catwalk():
    rows = documents()
    sources, domains = defaultdict(list), defaultdict(list)
    for row in rows:
        sources[row["source"]].append(row)
        domains[row["source"], row["subdomain"]].append(row)
    expected = {"": lm_eval_metrics(rows)}
    of_domain = {key: lm_eval_metrics(group) for key, group in sorted(domains.items()) if sum(row["tokens"] for row in group)}
    macros = {}
    for source, group in sorted(sources.items()):
        expected[f"source={source}"] = lm_eval_metrics(group)
        own = {subdomain: metrics for (of, subdomain), metrics in of_domain.items() if of == source}
        macros[source] = macro(list(own.values()))
        if len({row["subdomain"] for row in group}) > 1:
            expected.update({f"source={source}/subdomain={subdomain}": metrics for subdomain, metrics in own.items()})
        if len(own) > 1:
            expected[f"source={source}/macro"] = macros[source]
    expected["macro"] = macro(list(of_domain.values()))
    expected["macro/sources"] = macro(list(macros.values()))
    return {"rows": rows, "expected": expected}


def olmo():
    draw = random.Random(17)
    rows = [{"source": source, "subdomain": "", "nll": 63 * draw.uniform(1, 4), "tokens": 63, "bytes": 0, "chars": 0, "words": 0}
            for source in ["first-validation"] * 6 + ["second-validation"] * 3]
    expected = {}
    for source in sorted({row["source"] for row in rows}):
        evaluator = Evaluator(label=source, type=EvaluatorType.lm, eval_loader=None, eval_metric=MeanMetric())
        losses = torch.tensor([row["nll"] / row["tokens"] for row in rows if row["source"] == source])
        evaluator.update_metrics({"metadata": [None] * len(losses)}, losses, None)
        metrics = evaluator.compute_metrics()
        expected[f"source={source}"] = {"ce_loss": metrics[f"eval/{source}/CrossEntropyLoss"], "ppl": metrics[f"eval/{source}/Perplexity"]}
    return {"rows": rows, "expected": expected}


with open(sys.argv[1], "w") as file:
    json.dump({"eos": EOS, "windows": windows(), "texts": texts(), "catwalk": catwalk(), "olmo": olmo()}, file, separators=(",", ":"))
    file.write("\n")
