"""Random small trainings: config, token files and label masks. scripts/against_olmo.py and scripts/same_bits.py train them.

Needs: numpy and PyYAML, to write the files
"""

import collections
import copy
import functools
import random
import subprocess

Drawn = collections.namedtuple("Drawn", "config instances files tail masked repeats labelled")

USAGE_ERROR = 2  # the harness's exit code for what it does not support


class Ended(Exception):
    """The harness ended otherwise than expected."""

    def __init__(self, code, told):
        super().__init__(f"exit {code}: {told}")
        self.code, self.told = code, told


def run_harness(words, expected=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != expected:
        raise Ended(done.returncode, done.stderr.strip())


def group_of(config):
    """What a report calls the arithmetic of a config, and how it is shared out on ranks."""
    return ", ".join(config[key] for key in ("precision", "distributed_strategy") if key in config)


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def of(self, *values):
        return self.random.choice(values)

    def sometimes(self, share, settings, **choices):
        """Sets each key to one of its values, or leaves it out."""
        for key, values in choices.items():
            if self.random.random() < share:
                settings[key] = self.of(*values)


def random_model(draw):
    heads = draw.of(1, 2, 3, 4, 6)
    vocabulary = draw.of(97, 128, 300, 1000)
    model = dict(
        d_model=heads * draw.of(8, 16, 24, 32, 64), n_heads=heads, n_layers=draw.of(1, 2, 3), rope=True, include_bias=False,
        attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0, max_sequence_length=draw.of(8, 17, 32, 33, 64),
        vocab_size=vocabulary, embedding_size=draw.of(vocabulary, (vocabulary + 127) // 128 * 128), eos_token_id=vocabulary - 1, pad_token_id=1,
        bias_for_layer_norm=draw.of(True, False), init_fn=draw.of("mitchell", "normal", "full_megatron"))
    both = (True, False)
    draw.sometimes(0.5, model, attention_layer_norm=both, attention_layer_norm_with_affine=both, layer_norm_with_affine=both, weight_tying=both,
                   rope_theta=(100, 10000, 500000))
    draw.sometimes(0.7, model, activation_type=("swiglu",), layer_norm_type=("default", "low_precision", "rms"))
    draw.sometimes(0.3, model, clip_qkv=(0.05, 0.5, 8.0), layer_norm_eps=(1e-6, 1e-5, 1e-3), norm_after=(True,), init_std=(0.01, 0.05))
    draw.sometimes(0.2, model, scale_emb_init=(True,))
    width = {}
    draw.sometimes(0.4, width, mlp_hidden_size=[n * model["d_model"] for n in (2, 4, 10)])
    if not width:
        draw.sometimes(0.6, width, mlp_ratio=(2, 4, 8))
    grouped = {}
    draw.sometimes(0.3, grouped, multi_query_attention=(True,))
    if not grouped:
        draw.sometimes(0.5, grouped, n_kv_heads=[n for n in range(1, heads + 1) if heads % n == 0])
    return {**model, **width, **grouped}


def random_optimizer(draw):
    optimizer = dict(name=draw.of("adamw", "adamw", "adamw", "lionw"), learning_rate=draw.of(3e-4, 1e-3, 3e-3))
    if optimizer["name"] == "lionw":
        optimizer["learning_rate"] /= 10
    draw.sometimes(0.6, optimizer, weight_decay=(0.0, 0.01, 0.1, 1.0), betas=([0.0, 0.95], [0.8, 0.99], [0.9, 0.999]))
    draw.sometimes(0.5, optimizer, eps=(1e-8, 1e-6, 1e-5), decay_norm_and_bias=(True, False), decay_embeddings=(True, False))
    draw.sometimes(0.15, optimizer, selective_updates=(True,), no_decay_norm_and_bias=(True, False))
    return optimizer


def random_schedule(draw, tokens_of_a_step):
    schedule = dict(name=draw.of("cosine_with_warmup", "linear_with_warmup", "inverse_sqrt_with_warmup", "max_scheduler", "constant",
                                 "cosine_linear_envelope", "constant_with_warmup"))
    draw.sometimes(0.3, schedule, units=("tokens",))
    unit = tokens_of_a_step if "units" in schedule else 1
    schedule["t_warmup"] = draw.of(1, 2, 4) * unit
    draw.sometimes(0.3, schedule, t_max=(5 * unit, 8 * unit, 30 * unit), grad_clip_warmup_steps=(2 * unit, 5 * unit), warmup_min_lr=(0.0, 1e-5))
    draw.sometimes(0.5, schedule, alpha_f=(0.0, 0.1, 0.5), grad_clip_warmup_factor=(5.0, 0.5))
    return schedule


def share_out(draw, training):
    """How OLMo's trainer shares a training out on ranks. Not by NO_SHARD, of which it counts a gradient's norm once for each rank; and with tied
    weights not by size, where it ends with an error."""
    if "distributed_strategy" not in training:
        training.update(draw.of(dict(distributed_strategy="ddp", ddp={}), dict(distributed_strategy="fsdp", fsdp={})))
    if "ddp" in training:
        draw.sometimes(0.7, training["ddp"], grad_sync_mode=("batch", "micro_batch"))
    else:
        by_size = () if training["model"].get("weight_tying", True) else ("by_block_and_size",)
        draw.sometimes(0.7, training["fsdp"], sharding_strategy=("FULL_SHARD", "SHARD_GRAD_OP"),
                       wrapping_strategy=("by_block", "size_based", "one_in_two", None, *by_size))


def random_training(seed, ranks=1):
    draw = Draw(seed)
    model = random_model(draw)
    micro, steps = draw.of(1, 2, 3, 4), draw.of(4, 6, 10, 15)
    batch = ranks * draw.of(micro, 2 * micro, 3 * micro, 2 * micro + 1, 4 * micro)
    tokens = batch * model["max_sequence_length"]
    training = dict(
        run_name="random", seed=draw.random.randrange(10000), model=model, optimizer=random_optimizer(draw), scheduler=random_schedule(draw, tokens),
        global_train_batch_size=batch, device_train_microbatch_size=micro, precision=draw.of("fp32", "amp_bf16"),
        max_duration=draw.of(steps, f"{steps}", f"{steps * tokens}T", f"{steps * tokens + 1:e}T", "2ep"))
    draw.sometimes(0.6, training, max_grad_norm=(0.1, 1.0))
    draw.sometimes(0.2, training, max_grad_norm_ratio=(0.5, 1.2))
    draw.sometimes(0.4, training, softmax_auxiliary_loss=(True,))
    draw.sometimes(0.3, training, auxiliary_loss_multiplier=(1e-3, 1e-2))
    if training["precision"] == "fp32":
        draw.sometimes(0.2, model, scale_logits=(True,), rope_full_precision=(True, False))
    else:
        training.update(draw.of(dict(distributed_strategy="ddp", ddp={}), dict(distributed_strategy="fsdp", fsdp=dict(precision="mixed"))))
        if "fsdp" in training and "norm_after" in model:  # `default` is refused: its fp32 norms would end the bf16 residual stream
            model["layer_norm_type"] = draw.of("low_precision", "rms")
    if ranks > 1:
        share_out(Draw(f"ranks of {seed}"), training)
    data = training["data"] = dict(memmap_dtype=draw.of("uint16", "uint32"), drop_last=draw.of(True, True, False), num_workers=0)
    draw.sometimes(0.5, data, seed=(1, 34, 999))
    draw.sometimes(0.2, data, instance_filter=(dict(repetition_max_period=3, repetition_min_period=1, repetition_max_count=4),))
    per_epoch = draw.of(2, 3) if training["max_duration"] == "2ep" else draw.of(steps // 2 + 1, steps + 1)
    rest = draw.of(0, batch - 1) if data["drop_last"] else 0  # the trainer refuses a batch that is not full
    if Draw(f"documents of {seed}").random.random() < 0.25:
        data["generate_doc_lengths"] = True
        model["eos_token_id"] = seed % 17  # one of the frequent tokens
    if Draw(f"activation of {seed}").random.random() < 0.3:
        model["activation_type"] = ("gelu", "relu")[seed % 2]
    return Drawn(training, batch * per_epoch + rest, draw.of(1, 2, 3), draw.of(0, 0, 5), draw.random.random() < 0.2, "instance_filter" in data,
                 draw.random.random() < 0.2)


def random_evaluators(seed, config, ranks=1):
    """Keys of evaluations of token files within training. A file stands as the number of its instances; write_files() makes it. On ranks all
    instances count, as many for each rank: OLMo's trainer scores some twice, or leaves some out, where they cannot be shared out so."""
    draw, evaluators = Draw(f"evaluators of {seed}"), []
    for label in ("first", "second")[:draw.of(1, 2)]:
        data = dict(memmap_dtype=config["data"]["memmap_dtype"], drop_last=draw.of(True, False), num_workers=0)
        draw.sometimes(0.3, data, seed=(5, 77))
        files = lambda: [ranks * draw.of(1, 2, 3, 5, 8) for _ in range(draw.of(1, 2))]
        if draw.random.random() < 0.5:
            data["paths"] = files()
        else:
            data["datasets"] = {f"{name} {label}": files() for name in draw.random.sample(["zeta", "alpha", "mu"], draw.of(1, 2, 3))}
        evaluator = dict(label=label, type="lm", data=data)
        draw.sometimes(0.4, evaluator, subset_num_batches=(1, 2, -1), device_eval_batch_size=(1, 2, 3))
        evaluators.append(evaluator)
    settings = dict(evaluators=evaluators, device_eval_batch_size=draw.of(1, 2, 4))
    draw.sometimes(0.4, settings, eval_subset_num_batches=(1, 3, -1))
    if ranks > 1:
        settings.pop("eval_subset_num_batches", None)
        for evaluator in evaluators:
            evaluator.pop("subset_num_batches", None)
            evaluator["data"]["drop_last"] = False
    return settings


def random_branch(seed, drawn, step, tokens, ranks):
    """Settings, by their names with dots, of a training that goes on from the drawn one after its last step; None for most seeds."""
    draw, config = Draw(f"branch of {seed}"), drawn.config
    if draw.random.random() > 0.4 or (ranks > 1 and config.get("max_grad_norm_ratio")):  # FSDP's ranks have averages for weights without moments
        return None
    batch, micro = config["global_train_batch_size"], config["device_train_microbatch_size"]
    if config["data"]["drop_last"]:  # the trainer refuses a batch that is not full
        batch = draw.of(batch, *(n * ranks for n in (micro, 2 * micro, 3 * micro + 1) if n * ranks <= drawn.instances))
    branch = dict(global_train_batch_size=batch)
    draw.sometimes(0.2, branch, reset_trainer_state=(True,), restore_dataloader=(False,), epoch=(0, 1, 2), fast_forward_batches=(1, 2))
    begins_anew = "reset_trainer_state" in branch or "restore_dataloader" in branch
    if begins_anew or not config.get("max_grad_norm_ratio"):  # the trainer crashes where it has an average and no moments
        draw.sometimes(0.2, branch, reset_optimizer_state=(True,))
    draw.sometimes(0.3, branch, **{"optimizer.learning_rate": (1e-4, 2e-3), "data.seed": (2, 77), "max_grad_norm": (0.2, 2.0),
                                   "softmax_auxiliary_loss": (True, False)})
    if "reset_trainer_state" not in branch and config["optimizer"].get("weight_decay") != 0.0:  # else the trainer keeps the checkpoint's
        draw.sometimes(0.3, branch, **{"optimizer.weight_decay": (0.0, 0.3)})
    tokens_of_a_step = batch * config["model"]["max_sequence_length"]
    if draw.random.random() < 0.4:
        branch["scheduler"] = random_schedule(draw, tokens_of_a_step)
    if begins_anew:
        step = tokens = 0
    more = draw.of(2, 4, 7)
    return {**branch, "max_duration": draw.of(step + more, f"{tokens + more * tokens_of_a_step}T", "2ep", "4ep")}


def with_settings(config, settings):
    """The config with settings by their names with dots."""
    config = copy.deepcopy(config)
    for name, value in settings.items():
        *groups, key = name.split(".")
        functools.reduce(dict.__getitem__, groups, config)[key] = value
    return config


def write_branch(seed, drawn, step, tokens, file, ranks=1):
    """The config of random_branch() as a file; None for most seeds."""
    settings = random_branch(seed, drawn, step, tokens, ranks)
    return settings and write_config(with_settings(drawn.config, settings), file)


def write_evaluation_files(config, generator, folder):
    length, vocabulary, kind = config["model"]["max_sequence_length"], config["model"]["vocab_size"], config["data"]["memmap_dtype"]
    count = 0
    for evaluator in config.get("evaluators", []):
        data = evaluator["data"]
        for files in [data["paths"]] if "paths" in data else data["datasets"].values():
            for i, instances in enumerate(files):
                files[i], count = f"{folder}/evaluation-{count}.npy", count + 1
                generator.integers(0, vocabulary, instances * length).astype(kind).tofile(files[i])


def write_files(drawn, seed, folder):
    """Token files, label masks and config.yaml. Half of the tokens are of seventeen kinds, so that there is something to learn."""
    import numpy as np
    generator = np.random.default_rng(seed)
    length, vocabulary = (drawn.config["model"][key] for key in ("max_sequence_length", "vocab_size"))
    count = drawn.instances * length
    ids = generator.integers(0, vocabulary, count)
    ids = np.where(generator.random(count) < 0.5, ids % 17, ids).reshape(drawn.instances, length)
    if drawn.repeats:
        ids[::3, 1:12] = 5
    mask = generator.random(ids.shape) < 0.7
    edges = sorted({0, drawn.instances, *generator.integers(1, drawn.instances, drawn.files - 1).tolist()})
    paths, masks = [], []
    for first, last in zip(edges, edges[1:]):
        for array, kind, names in ((ids, drawn.config["data"]["memmap_dtype"], paths), (mask, "bool", masks)):
            names.append(f"{folder}/{kind}-{first}.npy")
            tail = array[0, :drawn.tail]  # too short for an instance
            np.concatenate([array[first:last].ravel(), tail]).astype(kind).tofile(names[-1])
    data = drawn.config["data"]
    if drawn.masked:
        data.update(paths=paths, label_mask_paths=masks)
    elif drawn.labelled:
        data["datasets"] = {f"label-{len(paths) - i}": [path] for i, path in enumerate(paths)}
    else:
        data["paths"] = paths
    write_evaluation_files(drawn.config, generator, folder)
    return write_config(drawn.config, folder / "config.yaml")


def write_config(config, file):
    import yaml
    file.write_text(yaml.safe_dump({**config, "save_folder": f"{file.parent}/reference", "save_overwrite": True}, sort_keys=False))
    return file
