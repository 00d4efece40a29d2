#!/usr/bin/env python3
"""Times whole training steps of olmo-harness against transformers' OlmoForCausalLM, in turn, in one run; or, on a CPU, steps
in bf16 mixed precision against our own in fp32 (--precision), unless they take LibTorch's products, too (--numerics fast).

Needs: numpy; for the peer torch and transformers, in the Python that runs this (or in --peer-python).
Run:   python3 bench/train_step.py --binary build/release/olmo-harness --out bench/results/train_step.md
       python3 bench/train_step.py --binary build/release/olmo-harness --device cuda --precision mixed --shapes 1B --compile

Both train the same architecture from random weights on the same random tokens in fp32: AdamW (the peer's fused), gradients
clipped to norm 1, one micro-batch, two threads. Each round starts both as new processes, one after the other; shared
machines drift, so the ratio of a round counts and not its absolute figures. The first step of a process is left out of
tokens/s and reported by itself, as time from the start of the process until it is done. Peak memory is the kernel's
(ru_maxrss). "dry run" is the rate that `train --dry-run` foretold just before (on a CPU), in tokens/s. "others" is the share
of the processors that other processes took meanwhile: repeat the run if it is large.

With numerics=fast (the default on a GPU) the peer computes in fp32 or under torch's autocast to bf16. On a GPU, of the peak: the
FLOPs that the model needs (`train --dry-run` has them) by the dense bf16 peak in configs/clusters. --no-peer leaves the peer out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from trainings import (EMBEDDING, PRECISIONS, SHAPES, STEPS, dense_peak, gpu_name, make_tokens, measure_ours, our_config, plan_of,
                       processor, publish, spread, watch)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the olmo-harness to measure")
    parser.add_argument("--shapes", default="T,S,M")
    parser.add_argument("--device", choices=["cpu", "cuda", "rocm"], default="cpu")
    parser.add_argument("--no-peer", action="store_true", help="time ours alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="steps of a process (default: 8, 4, 3, 8 at T, S, M, 1B)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32",
                        help="of our steps; on a CPU those other than fp32 are timed against our own in fp32, unless they are of "
                             "--numerics fast")
    parser.add_argument("--numerics", choices=["portable", "fast"], help="of our steps (default: portable on a CPU, else fast)")
    parser.add_argument("--microbatch", type=int, help="instances of a micro-batch of ours (default: the whole batch)")
    parser.add_argument("--activation-checkpointing", metavar="MODE", help="of ours (train_memory.py measures all modes)")
    parser.add_argument("--tokenizer", default="tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--compile", action="store_true", help="the peer goes through torch.compile")
    parser.add_argument("--out", type=pathlib.Path, help="Markdown file to write; the table goes to stdout in any case")
    parser.add_argument("--peer", nargs=3, metavar=("SHAPE", "TOKENS", "STEPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.peer and not arguments.binary:
        parser.error("--binary is needed")
    arguments.numerics = arguments.numerics or ("portable" if arguments.device == "cpu" else "fast")
    if arguments.no_peer and arguments.device == "cpu":
        parser.error("--no-peer is for --device cuda or rocm")
    return arguments


# ---------------------------------------------------------------- the peer, in a process of its own


def run_peer(shape_name, token_file, steps, arguments):
    import torch
    from transformers import OlmoConfig, OlmoForCausalLM

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    shape = SHAPES[shape_name]
    device = "cpu" if arguments.device == "cpu" else "cuda"  # torch calls ROCm's devices so, too
    narrow = torch.autocast(device, dtype=torch.bfloat16, enabled=arguments.precision != "fp32")
    model = OlmoForCausalLM(OlmoConfig(
        vocab_size=EMBEDDING, hidden_size=shape["d_model"], intermediate_size=4 * shape["d_model"],
        num_hidden_layers=shape["n_layers"], num_attention_heads=shape["n_heads"],
        max_position_embeddings=shape["length"], tie_word_embeddings=True, use_cache=False, dtype="float32")).to(device)
    model.train()
    forward = torch.compile(model) if arguments.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = np.fromfile(token_file, dtype=np.uint16).astype(np.int64).reshape(-1, shape["batch"], shape["length"])
    for step in range(1, steps + 1):
        started = time.perf_counter()
        ids = torch.from_numpy(tokens[step % len(tokens)]).to(device)
        optimizer.zero_grad(set_to_none=True)
        with narrow:
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss = loss.item()
        print(json.dumps(dict(step=step, seconds=time.perf_counter() - started, loss=loss)), flush=True)


def measure_peer(arguments, shape, token_file, steps):
    command = [arguments.peer_python, __file__, "--threads", str(arguments.threads), "--device", arguments.device, "--precision",
               arguments.precision, "--peer", shape, str(token_file), str(steps)] + (["--compile"] if arguments.compile else [])
    result = watch(command, arguments.threads, lambda line: line.startswith('{"step": 1,'))
    result["seconds"] = [json.loads(line)["seconds"] for line in result["lines"]["stdout"] if line.startswith("{")]
    return result


def own_config(arguments, shape, token_file, steps, precision):
    settings = {"device_train_microbatch_size": arguments.microbatch or SHAPES[shape]["batch"],
                "activation_checkpointing": arguments.activation_checkpointing,
                "device": arguments.device, "numerics": arguments.numerics}
    return our_config(arguments, shape, token_file, steps, settings | PRECISIONS[precision])


def foretold(arguments, config):
    """Tokens/s by the dry run; None on a GPU, whose table does not show it."""
    return plan_of(arguments, config)["step_time"]["tokens_per_second"] if arguments.device == "cpu" else None


def is_against_ours(arguments):
    """Whether our own steps in fp32 are what ours in bf16 are timed against."""
    return arguments.precision != "fp32" and arguments.numerics == "portable" and arguments.device == "cpu"


def measure_other(arguments, shape, token_file, steps):
    if not is_against_ours(arguments):
        return measure_peer(arguments, shape, token_file, steps)
    return measure_ours(arguments, own_config(arguments, shape, token_file, steps, "fp32"))


def of_the_peak(arguments, shape, token_file, rounds):
    """The line of a GPU's table: tokens/s, and the share of the dense bf16 peak that they come to."""
    config = our_config(arguments, shape, token_file, STEPS[shape], PRECISIONS[arguments.precision])
    plan = plan_of(arguments, config)
    needed = plan["flops_per_token"]["model_forward"] + plan["flops_per_token"]["model_backward"]
    peak = dense_peak(gpu_name(arguments.device))
    tokens = SHAPES[shape]["batch"] * SHAPES[shape]["length"]
    columns, medians = [shape], {}
    for who in ("ours", "peer"):
        rates = [tokens / s for one in rounds if who in one for s in one[who]["seconds"][2:]]
        medians[who] = statistics.median(rates) if rates else None
        columns.append(spread(rates) if rates else "-")
        columns.append(f"{100 * medians[who] * needed / peak:.1f} %" if rates and peak else "-")
    columns.append(f"{medians['ours'] / medians['peer']:.2f}" if medians["peer"] else "-")
    columns.append(" / ".join(f"{one['ours']['first_step']:.1f}" for one in rounds))
    return "| " + " | ".join(columns) + " |"


def gpu_report(arguments, lines):
    name = gpu_name(arguments.device)
    peak = dense_peak(name)
    peer = "left out" if arguments.no_peer else (f"`OlmoForCausalLM` {'through torch.compile' if arguments.compile else 'eager'}, "
                                                 f"{peer_versions(arguments.peer_python)}")
    return "\n".join([
        "# Training steps on a GPU", "",
        f"`python3 {' '.join(sys.argv)}` on {name}, {processor()}, {time.strftime('%Y-%m-%d')}. Peer: {peer}. Peak: "
        f"{f'{peak / 1e12:.0f} TFLOP/s dense in bf16' if peak else 'not known of this device'}. {arguments.precision}, random tokens, "
        "steps from the third on. Columns of three: min / median / max.", "",
        "| shape | tokens/s | of the peak | peer tokens/s | of the peak | ratio of medians | first step s |",
        "| --- | --- | --- | --- | --- | --- | --- |", *lines, ""])


def summarize(shape, rounds):
    tokens = SHAPES[shape]["batch"] * SHAPES[shape]["length"]
    rates = {who: [tokens / s for one in rounds for s in one[who]["seconds"][1:]] for who in ("ours", "peer")}
    ratios = [statistics.median(one["peer"]["seconds"][1:]) / statistics.median(one["ours"]["seconds"][1:])
              for one in rounds]
    memory = {who: max(one[who]["peak_mib"] for one in rounds) for who in rates}
    first = {who: [one[who]["first_step"] for one in rounds] for who in rates}
    planned = [one["ours"]["foretold"] for one in rounds]
    others = max(one[who]["others"] for one in rounds for who in rates)
    return (f"| {shape} | {spread(rates['ours'])} | {spread(planned)} | {spread(rates['peer'])} | {spread(ratios, 2)} | "
            f"{memory['ours']:.0f} | {memory['peer']:.0f} | {memory['ours'] / memory['peer']:.2f} | "
            f"{spread(first['ours'], 2)} | {spread(first['peer'], 2)} | {100 * others:.0f} % |")


def peer_versions(python):
    code = "import torch, transformers; print(f'torch {torch.__version__}, transformers {transformers.__version__}')"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def report(arguments, lines):
    how = "through torch.compile" if arguments.compile else "eager"
    common = f"{arguments.threads} threads, clip 1.0, vocabulary {EMBEDDING}, tied. Columns of three: min / median / max."
    if not is_against_ours(arguments):
        title = "# Training steps against transformers"
        precision = "fp32" if arguments.precision == "fp32" else f"bf16 (ours {arguments.precision}, the peer under autocast)"
        peer = (f"Peer: `OlmoForCausalLM` {how}, {peer_versions(arguments.peer_python)}, AdamW fused. {precision}, numerics="
                f"{arguments.numerics}, {common}")
    else:
        title = f"# Training steps in bf16 ({arguments.precision}) against our own in fp32"
        peer = f"Peer: the same binary with `precision: fp32`. Ours: {json.dumps(PRECISIONS[arguments.precision])}. {common}"
    options = (" --compile" if arguments.compile else "") + (
        "" if arguments.precision == "fp32" else f" --precision {arguments.precision}") + (
        "" if arguments.numerics == "portable" else f" --numerics {arguments.numerics}")
    head = [
        title, "",
        f"`python3 bench/train_step.py --shapes {arguments.shapes} --rounds {arguments.rounds} --threads "
        f"{arguments.threads}{options}` on {processor()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}.", peer, "",
        "| shape | tokens/s | dry run | peer tokens/s | ratio per round | peak MiB | peer MiB | ratio | first step s | peer first "
        "step s | others |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    shapes = [f"{name}: d_model {s['d_model']}, {s['n_layers']} layers, {s['n_heads']} heads, length {s['length']}, batch "
              f"{s['batch']}" for name, s in SHAPES.items() if name in arguments.shapes.split(",")]
    return "\n".join(head + lines + ["", "; ".join(shapes) + ".", ""])


def main():
    arguments = parse_arguments()
    if arguments.peer:
        shape, token_file, steps = arguments.peer
        run_peer(shape, token_file, int(steps), arguments)
        return
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in arguments.shapes.split(","):
            token_file = make_tokens(folder, shape)
            steps, least = arguments.steps or STEPS[shape], 2 if arguments.device == "cpu" else 3
            if steps < least:
                sys.exit(f"--steps: expected at least {least}, because the first are left out")
            rounds = []
            for index in range(arguments.rounds):
                config = own_config(arguments, shape, token_file, steps, arguments.precision)
                rate = foretold(arguments, config)
                rounds.append({"ours": measure_ours(arguments, config) | {"foretold": rate}})
                if not arguments.no_peer:
                    try:
                        rounds[-1]["peer"] = measure_other(arguments, shape, token_file, steps)
                    except SystemExit as problem:  # on a GPU our own figures are worth having without it
                        if arguments.device == "cpu":
                            raise
                        print(problem, file=sys.stderr)
                        arguments.no_peer = True
                print(f"{shape} round {index + 1}: " + ", ".join(
                    f"{who} {statistics.median(one['seconds'][1:]):.3f} s/step" for who, one in rounds[-1].items()),
                    file=sys.stderr)
            lines.append(summarize(shape, rounds) if arguments.device == "cpu" else
                         of_the_peak(arguments, shape, token_file, rounds))
    text = report(arguments, lines) if arguments.device == "cpu" else gpu_report(arguments, lines)
    publish(text, arguments.out)


if __name__ == "__main__":
    main()
