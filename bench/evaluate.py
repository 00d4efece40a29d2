#!/usr/bin/env python3
"""Times `olmo-harness eval` on the eight tasks against lm-eval's HFLM and OLMo's own evaluator, in turn, in one run.

Needs: ai2-olmo==0.6.0 lm_eval==0.4.13 transformers tokenizers torch accelerate, in the Python that runs this (or in
--peer-python), and the data that `olmo-harness data fetch` brings.
Run:   python3 bench/evaluate.py --binary build/release/olmo-harness --data DIR --out bench/results/evaluate.md

All score the same requests, the first --docs documents of each task's oe_eval_tasks/TASK/rc_0shot without the unconditional
ones, with the same random weights (d_model 512, 8 layers, 8 heads, vocabulary 50304, tied, length 2048) in fp32 on the CPU; on a GPU
(--device) OLMo-1B's shape in bf16, ours with numerics=fast, and without OLMo's evaluator.
lm-eval gets all requests in one call, as its evaluator does; OLMo's takes batches of 32 in the order of the data, with the
cross-entropy over the whole batch that its trainer computes. Each is a process of its own; "scoring s" leaves out its start:
imports, model and data. "first s" is from the start of the process until the first batch went through the model (ours: until
the first scores can be read from the database). "positions" are what went through the model, padding included. Shared machines drift, so the ratio of a
round counts and not its absolute figures; "others" is the share of the processors that other processes took meanwhile.
"""

import argparse
import contextlib
import gzip
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from trainings import gpu_name, processor, publish, spread, watch

TASKS = ["arc_easy", "arc_challenge", "boolq", "hellaswag", "openbookqa", "piqa", "sciq", "winogrande"]
SIZE = dict(hidden_size=512, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=8, vocab_size=50304,
            max_position_embeddings=2048, tie_word_embeddings=True, eos_token_id=50279, pad_token_id=1, bos_token_id=None)
SIZE_ON_GPU = SIZE | dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=16)
TOKENIZER = "tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json"
SETTING = {"cpu": "fp32, d_model 512, 8 layers, 8 heads", "gpu": "bf16, d_model 2048, 16 layers, 16 heads"}
NAMES = {"ours": "olmo-harness eval", "ours+unconditional": "olmo-harness eval, unconditional requests too",
         "olmo": "OLMo's OEEvalTask and ICLMetric, batch 32"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the olmo-harness to measure")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="fetched folder with oe_eval_tasks and tokenizers")
    parser.add_argument("--docs", type=int, default=50, help="documents of each task")
    parser.add_argument("--device", choices=["cpu", "cuda", "rocm"], default="cpu")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-sizes", default="1,8,32", help="of lm-eval")
    parser.add_argument("--only", help="measure these alone: ours,ours+unconditional,olmo,lm-eval-32,…")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, help="Markdown file to write; the table goes to stdout in any case")
    parser.add_argument("--peer", nargs=3, metavar=("NAME", "FOLDER", "OUT"), help=argparse.SUPPRESS)
    return parser.parse_args()


def requests_of(data, docs):
    """(task, doc_id, cont_id, context, continuation) of the conditional requests, in the order of the files."""
    for task in TASKS:
        with gzip.open(data / f"oe_eval_tasks/{task}/rc_0shot/requests.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if row["doc_id"] < docs:
                    yield task, row["doc_id"], row["idx"], row["request"]["context"], row["request"]["continuation"]


# ---------------------------------------------------------------- the peers, each in a process of its own


def make_model(arguments, folder):
    import torch
    from transformers import OlmoConfig, OlmoForCausalLM

    torch.manual_seed(0)
    size = SIZE if arguments.device == "cpu" else SIZE_ON_GPU
    OlmoForCausalLM(OlmoConfig(**size, dtype="float32")).save_pretrained(folder)


def count_positions(module, counts):
    """Counts what goes through `module`; the end of the first call is the first score, or just before it."""

    def hook(_module, args, kwargs, _output):
        ids = args[0] if args else kwargs["input_ids"]
        counts["positions"] = counts.get("positions", 0) + ids.numel()
        if "first" not in counts:
            counts["first"] = True
            print("first batch", flush=True)

    module.register_forward_hook(hook, with_kwargs=True)


def run_lm_eval(arguments, folder, batch_size):
    """Scores, by (task, doc_id, cont_id): (log-likelihood, tokens of the context, of the continuation)."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(arguments.data / TOKENIZER), eos_token="<|endoftext|>",
                                        pad_token="<|padding|>")
    device, dtype = ("cpu", "float32") if arguments.device == "cpu" else ("cuda", "bfloat16")  # torch calls ROCm's so, too
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device)
    lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch_size, max_length=2048, device=device)
    keys = list(requests_of(arguments.data, arguments.docs))
    counts = {}
    count_positions(lm.model, counts)
    started = time.perf_counter()
    requests = [Instance(request_type="loglikelihood", doc={}, arguments=key[3:], idx=0) for key in keys]
    scores = lm.loglikelihood(requests, disable_tqdm=True)
    seconds = time.perf_counter() - started
    encoded = [lm._encode_pair(*key[3:]) for key in keys]
    rows = [(*key[:3], score, len(ctx), len(cont)) for key, (score, _), (ctx, cont) in zip(keys, scores, encoded, strict=True)]
    return dict(seconds=seconds, positions=counts["positions"], rows=rows)


def olmo_model(folder):
    import safetensors.torch
    import torch
    from olmo.config import ActivationType, LayerNormType, ModelConfig
    from olmo.model import OLMo

    model = OLMo(ModelConfig(
        d_model=512, n_heads=8, n_layers=8, mlp_ratio=8, activation_type=ActivationType.swiglu, rope=True, include_bias=False,
        max_sequence_length=2048, vocab_size=50280, embedding_size=50304, eos_token_id=50279, pad_token_id=1, weight_tying=True,
        layer_norm_type=LayerNormType.default, layer_norm_with_affine=False, attention_layer_norm_with_affine=False,
        bias_for_layer_norm=False, init_device="cpu", attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0))
    hf = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    state = {"transformer.wte.weight": hf["model.embed_tokens.weight"]}
    for i in range(8):
        part = {key.split(f"layers.{i}.")[1]: value for key, value in hf.items() if f".layers.{i}." in key}
        block = f"transformer.blocks.{i}."
        state[block + "att_proj.weight"] = torch.cat([part[f"self_attn.{x}_proj.weight"] for x in "qkv"])
        state[block + "attn_out.weight"] = part["self_attn.o_proj.weight"]
        state[block + "ff_proj.weight"] = torch.cat([part["mlp.up_proj.weight"], part["mlp.gate_proj.weight"]])
        state[block + "ff_out.weight"] = part["mlp.down_proj.weight"]
    model.load_state_dict(state)
    return model.eval()


def run_olmo(arguments, folder):
    import olmo.eval.downstream as downstream
    import torch
    from olmo.tokenizer import Tokenizer
    from olmo.train import cross_entropy_loss
    from torch.utils.data import DataLoader

    def load(path, name, _split):
        with gzip.open(arguments.data / f"oe_eval_tasks/{path}/{name}/requests.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        config = json.loads((arguments.data / f"oe_eval_tasks/{path}/{name}/config.json").read_text())
        return config, [row for row in rows if row["doc_id"] < arguments.docs]

    downstream.load_oe_eval_requests = load
    downstream.OEEvalTask.metric_type = None
    tokenizer = Tokenizer.from_file(arguments.data / TOKENIZER, eos_token_id=50279, pad_token_id=1)
    model = olmo_model(folder)
    counts, rows, seconds = {}, [], 0.0
    count_positions(model, counts)
    for name in TASKS:
        task = downstream.OEEvalTask(tokenizer, name, "rc_0shot")
        metric = downstream.ICLMetric("acc")  # its state is the log-likelihood itself
        started = time.perf_counter()
        for batch in DataLoader(task, batch_size=32, collate_fn=task.collate_fn):
            with torch.no_grad():
                logits = model(input_ids=batch["input_ids"]).logits
                flat = logits[..., :-1, :].contiguous().view(-1, logits.size(-1))
                cross_entropy_loss(flat, batch["input_ids"][:, 1:].reshape(-1), reduction="none")
            metric.update(batch, logits)
        metric.compute()
        seconds += time.perf_counter() - started
        rows += [(name, int(doc), int(cont), score.item(), sample["ctx_len"], sample["cont_len"])
                 for (doc, cont, score), sample in zip(metric.loglikelihoods, task.samples, strict=True)]
    return dict(seconds=seconds, positions=counts["positions"], rows=rows)


def run_peer(arguments):
    name, folder, out = arguments.peer
    import torch

    torch.set_num_threads(arguments.threads)
    if name == "model":
        make_model(arguments, folder)
        return
    if name == "olmo":
        result = run_olmo(arguments, folder)
    else:
        result = run_lm_eval(arguments, folder, int(name.removeprefix("lm-eval-")))
    pathlib.Path(out).write_text(json.dumps(result))


# ---------------------------------------------------------------- measuring


def peer_command(arguments, name, model, out):
    return [arguments.peer_python, __file__, "--data", str(arguments.data), "--docs", str(arguments.docs), "--threads",
            str(arguments.threads), "--device", arguments.device, "--peer", name, str(model), str(out)]


def measure_peer(arguments, name, model, folder):
    out = folder / "peer.json"
    result = watch(peer_command(arguments, name, model, out), arguments.threads, lambda line: line == "first batch\n")
    return result | json.loads(out.read_text())


def has_scores(database):
    if not database.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as records:
            return records.execute("SELECT 1 FROM evaluation_options LIMIT 1").fetchone() is not None
    except sqlite3.OperationalError:  # its tables are being made
        return False


def measure_ours(arguments, name, model, parent):
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        return evaluate_ours(arguments, name, model, pathlib.Path(folder))


def evaluate_ours(arguments, name, model, folder):
    instances, database = folder / "instances.jsonl", folder / "evaluations.db"
    command = [arguments.binary, "eval", str(model), "--tokenizer", str(arguments.data / TOKENIZER), "--data",
               str(arguments.data), "--tasks", ",".join(TASKS), "--convention", "oe", "--limit", str(arguments.docs),
               "--threads", str(arguments.threads), "--instances", str(instances), "--db",
               str(database), "--json"]
    if name == "ours":
        command.append("--no-unconditional")
    if arguments.device != "cpu":
        command += ["--device", arguments.device, "--numerics", "fast", "--precision", "amp_bf16"]
    result = watch(command, arguments.threads, lambda _line: False, lambda: has_scores(database))
    report = json.loads("".join(result["lines"]["stdout"]))
    rows = [(r["task"], r["doc_id"], r["cont_id"], r["logprob"], r["ctx_tokens"], r["cont_tokens"])
            for r in map(json.loads, instances.read_text().splitlines())]
    return result | dict(seconds=report["seconds"], positions=report["rows"], rows=rows)


def difference(rows, others):
    """(largest difference of a log-likelihood, requests that were encoded otherwise)"""
    known = {tuple(row[:3]): tuple(row[3:]) for row in others}
    if len(known) != len(rows):
        sys.exit(f"expected scores of {len(rows)} requests, got {len(known)}")
    pairs = [(tuple(row[3:]), known[tuple(row[:3])]) for row in rows]
    same = [abs(a[0] - b[0]) for a, b in pairs if a[1:] == b[1:]]
    return max(same, default=float("nan")), len(pairs) - len(same)


def summarize(name, rounds, base):
    ours, requests = [one[name] for one in rounds], len(rounds[0][base]["rows"])
    largest, otherwise = difference(rounds[0][base]["rows"], ours[0]["rows"])
    ratios = {key: spread([one[name][key] / one[base][key] for one in rounds], 2) for key in ("wall", "seconds")}
    label = NAMES.get(name) or f"lm-eval HFLM.loglikelihood, batch {name.removeprefix('lm-eval-')}"
    return (f"| {label} | {spread([one['wall'] for one in ours], 1)} | {spread([one['seconds'] for one in ours], 1)} | "
            f"{requests / statistics.median(one['seconds'] for one in ours):.1f} | {ratios['wall']} | {ratios['seconds']} | "
            f"{ours[0]['positions']} | {max(one['peak_mib'] for one in ours):.0f} | "
            f"{spread([one['first_step'] or one['wall'] for one in ours], 2)} | {largest:.1e} | {otherwise} | "
            f"{100 * max(one['others'] for one in ours):.0f} % |")


def versions(python):
    code = ("import importlib.metadata as m; has = {d.metadata['Name'].lower().replace('-', '_') for d in m.distributions()}; "
            "print(', '.join(f'{p} {m.version(p)}' for p in ('torch', 'transformers', 'lm_eval', 'ai2-olmo') "
            "if p.replace('-', '_') in has))")
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def report(arguments, names, rounds):
    base = "ours" if "ours" in names else names[0]
    head = [
        "# Evaluation against lm-eval and OLMo's evaluator", "",
        f"`python3 bench/evaluate.py --docs {arguments.docs} --rounds {len(rounds)} --threads {arguments.threads} --device "
        f"{arguments.device}` on {processor() if arguments.device == 'cpu' else gpu_name(arguments.device)}, {time.strftime('%Y-%m-%d')}.",
        f"{len(rounds[0][base]['rows'])} requests: the first {arguments.docs} documents of each of the eight tasks. "
        f"{SETTING['cpu' if arguments.device == 'cpu' else 'gpu']}, vocabulary 50304, tied. Peers: {versions(arguments.peer_python)}.",
        f"Columns of three: min / median / max. Times and log-likelihoods are compared with the row of {NAMES.get(base, base)}; "
        "“encoded otherwise” requests have other numbers of tokens and are not compared.", "",
        "| implementation | whole process s | scoring s | requests/s | process, ratio per round | scoring, ratio per round | "
        "positions | peak MiB | first s | largest difference | encoded otherwise | others |", "| --- " * 12 + "|"]
    return "\n".join(head + [summarize(name, rounds, base) for name in names] + [""])


def main():
    arguments = parse_arguments()
    if arguments.peer:
        run_peer(arguments)
        return
    names = (["ours", "ours+unconditional"] if arguments.binary else []) + [
        f"lm-eval-{size}" for size in arguments.batch_sizes.split(",")] + (["olmo"] if arguments.device == "cpu" else [])
    if arguments.only:
        names = arguments.only.split(",")
    rounds = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model = folder / "model"
        subprocess.run(peer_command(arguments, "model", model, folder), check=True)
        for index in range(arguments.rounds):
            rounds.append({})
            for name in names:
                measure = measure_ours if name.startswith("ours") else measure_peer
                rounds[-1][name] = measure(arguments, name, model, folder)
                print(f"round {index + 1}: {name} {rounds[-1][name]['wall']:.1f} s, scoring "
                      f"{rounds[-1][name]['seconds']:.1f} s", file=sys.stderr)
    text = report(arguments, names, rounds)
    publish(text, arguments.out)


if __name__ == "__main__":
    main()
