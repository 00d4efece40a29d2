#!/usr/bin/env python3
"""Compares the peak memory of random trainings with what `train --dry-run` plans.

Run:   python3 bench/random_memory.py --binary build/release/olmo-harness --seeds 1 70

A seed decides model, micro-batches, precision, strategy, numerics, recomputation, attention within documents, evaluators, saves,
and one or two ranks. Each training is of three steps. Exit code 5 if the plan is further than 3 % and 0.2 GiB from
the fullest rank: others have less to write of a checkpoint, where a tensor is large.
"""

import argparse
import random
import sys
import tempfile

import numpy as np
from train_ranks import is_far, measure_with_memory

MOST_TOKENS = 8192  # of a micro-batch
WORDS = 1500  # that occur in the data


def random_model(of):
    heads = of([4, 8, 16])
    width = heads * of([32, 64, 128])
    if width > 1024:
        heads, width = 8, 1024
    rows = of([2048, 16384, 50304])
    model = dict(
        d_model=width, n_heads=heads, n_layers=of([1, 2, 4, 8]), max_sequence_length=of([128, 512, 1024, 2048]), vocab_size=rows - 24,
        embedding_size=rows, eos_token_id=5, pad_token_id=1, weight_tying=of([True, False]), layer_norm_type=of(["default", "rms"]),
        attention_layer_norm=of([True, False]), layer_norm_with_affine=of([True, False]), mlp_hidden_size=of([2, 4, 8]) * width,
        activation_type=of(["swiglu", "swiglu", "gelu", "relu"]))
    return model | of([{}, dict(n_kv_heads=of([1, heads // 2, heads]))])


def random_config(seed, folder):
    """A training, and on how many ranks it runs."""
    of = random.Random(seed).choice
    model, ranks = random_model(of), of([1, 1, 2])
    micro = min(of([1, 2, 4, 8]), MOST_TOKENS // model["max_sequence_length"])
    tokens = f"{folder}/tokens.npy"
    data = dict(paths=[tokens], memmap_dtype="uint16") | of([{}, dict(generate_doc_lengths=True)])
    config = dict(
        run_name="memory", seed=1, model=model, optimizer=dict(name=of(["adamw", "lionw"]), learning_rate=1e-3), data=data,
        scheduler=dict(name="constant", t_warmup=1), precision=of(["fp32", "amp_bf16"]), numerics=of(["portable", "portable", "fast"]),
        global_train_batch_size=ranks * micro * of([1, 2, 3]), device_train_microbatch_size=micro, max_duration=3, max_grad_norm=1.0,
        threads=of([1, 2]) if ranks == 1 else 1, save_interval=of([1000, 2]), save_num_checkpoints_to_keep=1,
        activation_checkpointing=of([None, None, "whole_layer", "one_in_two", "fine_grained"]), softmax_auxiliary_loss=of([True, False]))
    config |= of([dict(distributed_strategy="ddp"), dict(distributed_strategy="fsdp", fsdp=dict(
        precision="mixed", sharding_strategy=of(["FULL_SHARD", "SHARD_GRAD_OP"])))])
    evaluated = dict(label="same", type="lm", data=dict(paths=[tokens], memmap_dtype="uint16", drop_last=False))
    if ranks == 1:  # a plan of ranks does not look at the files, and takes them for long
        config |= of([{}, {}, dict(evaluators=[evaluated], device_eval_batch_size=of([1, 4]), eval_interval=2)])
    instances = 4 * config["global_train_batch_size"]
    np.random.default_rng(seed).integers(0, WORDS, instances * model["max_sequence_length"]).astype("uint16").tofile(tokens)
    return config, ranks


def told(config):
    """What of a config decides most of its memory."""
    model = config["model"]
    return ", ".join(str(value) for value in (
        config["precision"], config["distributed_strategy"], config["numerics"], config["activation_checkpointing"] or "-",
        f"d_model {model['d_model']}", f"{model['n_layers']} layers", f"{model['embedding_size']} words",
        f"{config['device_train_microbatch_size']} × {model['max_sequence_length']} tokens"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the olmo-harness to measure")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 70), metavar=("FIRST", "LAST"))
    arguments = parser.parse_args()
    missed = 0
    print("| seed | training | ranks | plan, MiB | peak by rank, MiB | fullest minus plan |\n|" + " --- |" * 6)
    for seed in range(arguments.seeds[0], arguments.seeds[1] + 1):
        with tempfile.TemporaryDirectory() as folder:
            config, ranks = random_config(seed, folder)
            result = measure_with_memory(arguments, config, ranks, *(["--world-size", str(ranks)] if ranks > 1 else []))
        plan, peaks = result["plan"], result["peaks"]
        missed += is_far(max(peaks), plan)
        print(f"| {seed} | {told(config)} | {ranks} | {plan:.0f} | "
              f"{', '.join(f'{peak:.0f}' for peak in peaks)} | {max(peaks) - plan:+.0f} |", flush=True)
    return 5 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
