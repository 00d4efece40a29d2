#!/usr/bin/env python3
"""Trains random small models by OLMo-core's own trainer and by the harness, from its config, weights and tokens; makes reports/against_olmo_core.md.

Needs: pip install ai2-olmo-core==3.0.0 torch==2.11.0 numpy==2.4.6
Run:   scripts/against_olmo_core.py HARNESS [--seeds FIRST LAST] [--jobs N] [--output reports/against_olmo_core.md]

A seed decides an experiment: OLMo 2 or OLMo 3 in small, optimizer, schedule, batches, z-loss, length. OLMo-core trains it and leaves its config, a
log and checkpoints. `runs import` brings the log here, and tells the config in OLMo's keys; the harness trains that, and `report parity` compares
both. Where every gradient is clipped, `checkpoint import` takes a checkpoint of OLMo-core's from the middle, and the harness goes on from it.
Learning rates must be equal. Losses and norms are held to how far OLMo-core comes from itself when its initial weights differ by half an ulp, or in
bf16, of which FSDP makes copies for half of the trainings, by an eighth of an ulp of bf16.
Exits 1 if a training is more than LIMIT times that away, or if the verdict tells of a difference.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import datetime
import json
import logging
import math
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "goldens"))
sys.path.insert(0, str(ROOT / "scripts"))
import random_trainings  # noqa: E402
from against_olmo import ratios, row, versions_of  # noqa: E402

LIMIT, REPEATS, MORE, SAVED = 3, 4, 30, 20
# Where OLMo-core comes further from itself (nats), two of its own trainings may end as different models.
STEADY = 1e-4
# OLMo-core counts as at least so far from itself: what the rounding of a float or two makes.
FLOOR = {"loss": 2e-6, "gradient norm": 1e-5, "loss after a checkpoint": 2e-6}
STATED = ("initial_weights", "data_order", "token_files")  # what no log tells

Drawn = collections.namedtuple("Drawn", "experiment instances length batch clips skips bf16")
Result = collections.namedtuple("Result", "seed kind steps wrong distance spread verdict")


def random_optimizer(draw):
    from olmo_core.optim import AdamWConfig, OptimGroupOverride, SkipStepAdamWConfig

    groups = [OptimGroupOverride(params=["embeddings.weight"], opts=dict(weight_decay=0.0))]
    return draw.of(AdamWConfig, AdamWConfig, SkipStepAdamWConfig)(
        lr=draw.of(1e-3, 3e-3), betas=draw.of((0.9, 0.95), (0.8, 0.99)), eps=draw.of(1e-8, 1e-6), weight_decay=draw.of(0.0, 0.1),
        group_overrides=draw.of(None, groups))


def random_schedule(draw, tokens):
    """`tokens` of a step."""
    from olmo_core.optim import ConstantWithWarmup, CosWithWarmup, LinearWithWarmup

    units = draw.of("steps", "tokens")
    warmup = draw.of(1, 3, 7) * (tokens if units == "tokens" else 1)
    schedule = draw.of(CosWithWarmup, LinearWithWarmup, ConstantWithWarmup)
    shape = {} if schedule is ConstantWithWarmup else dict(alpha_f=draw.of(0.0, 0.1, 0.3))
    return schedule(warmup=warmup, units=units, warmup_min_lr=draw.of(0.0, 1e-4), **shape)


def random_model(draw):
    from olmo_core.nn.attention import SlidingWindowAttentionConfig
    from olmo_core.nn.rope import YaRNRoPEScalingConfig
    from olmo_core.nn.transformer import TransformerConfig

    heads, layers = draw.of(2, 4), draw.of(1, 2, 3)
    model = TransformerConfig.llama_like(
        d_model=heads * draw.of(8, 16), vocab_size=128, n_heads=heads, n_kv_heads=draw.of(1, heads), n_layers=layers, hidden_size_multiple_of=8,
        qk_norm=True, block_name="reordered_norm", layer_norm_eps=draw.of(1e-6, 1e-5), rope_theta=draw.of(10000, 500000))
    model.tie_word_embeddings = draw.of(True, False)
    if layers == 3 and draw.of(True, False):
        model.block.sequence_mixer.sliding_window = SlidingWindowAttentionConfig(
            pattern=[7, 7, -1], force_full_attention_on_first_layer=False, force_full_attention_on_last_layer=True)
        if draw.of(True, False):
            model = model.with_rope_scaling(YaRNRoPEScalingConfig(factor=4.0, beta_fast=4, beta_slow=1, old_context_len=16))
    return model


def random_experiment(seed, folder):
    from olmo_core.config import DType
    from olmo_core.data import NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig
    from olmo_core.train import Duration, TrainerConfig
    from olmo_core.train.train_module import TransformerDataParallelConfig, TransformerTrainModuleConfig

    draw = random_trainings.Draw(seed)
    length, batch, instances = draw.of(16, 32, 64), draw.of(4, 8), draw.of(165, 250)
    clips = draw.of(True, False)
    optim = random_optimizer(draw)
    steps = draw.of(45, 60)
    tokenizer = TokenizerConfig(vocab_size=126, eos_token_id=125, pad_token_id=125, identifier="no/such-tokenizer")
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=draw.of(1, 2, batch) * length, max_sequence_length=length, optim=optim, max_grad_norm=0.01 if clips else draw.of(None, 1.0),
        z_loss_multiplier=draw.of(None, 1e-5, 1e-3), scheduler=random_schedule(draw, batch * length))
    experiment = dict(
        model=random_model(draw),
        dataset=NumpyFSLDatasetConfig(paths=[f"{folder}/tokens.npy"], sequence_length=length, tokenizer=tokenizer, work_dir=f"{folder}/work", dtype="uint16"),
        data_loader=NumpyDataLoaderConfig(global_batch_size=batch * length, seed=seed),
        train_module=module,
        trainer=TrainerConfig(save_folder="", metrics_collect_interval=1, work_dir=f"{folder}/work", save_overwrite=True,
                              max_duration=draw.of(Duration.steps(steps), Duration.tokens(steps * batch * length), Duration.epochs(2))))
    bf16 = draw.of(True, False)
    if bf16:
        module.dp_config = TransformerDataParallelConfig(name="fsdp", param_dtype=DType.bfloat16, reduce_dtype=DType.float32)
    return Drawn(experiment, instances, length, batch, clips, type(optim).__name__ == "SkipStepAdamWConfig", bf16)


def perturbed(model, seed, bf16):
    """Moves each value by up to half an ulp; under bf16, which rounds such a difference away, by an eighth of an ulp of its own."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            values = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            values.mul_(1 + (2 * torch.rand(values.shape, generator=generator) - 1) * 2.0 ** (-10 if bf16 else -24))


def train_there(drawn, folder, seed, perturbation=None):
    """The rows of OLMo-core's log. Without a perturbation it leaves folder/initial, folder/saved/stepN and folder/config.json."""
    import olmo_core.distributed.parallel
    from olmo_core.distributed.checkpoint import save_model_and_optim_state
    from olmo_core.train.callbacks import Callback, CheckpointerCallback
    from olmo_core.utils import seed_all

    @dataclasses.dataclass
    class Rows(Callback):
        rows: list = dataclasses.field(default_factory=list)

        def log_metrics(self, step, metrics):
            if "train/CE loss" in metrics:
                self.rows.append({"step": step, **{name: value for name, value in metrics.items() if isinstance(value, float)}})

    parts = drawn.experiment
    place = "saved" if perturbation is None else f"repeat{perturbation}"  # where it would go on from what it finds
    saving = parts["trainer"].with_callback("checkpointer", CheckpointerCallback(
        save_interval=1000, fixed_steps=[SAVED], save_async=False, pre_train_checkpoint=False, enabled=perturbation is None))
    configured = dataclasses.replace(saving, save_folder=f"{folder}/{place}").with_callback("rows", Rows())
    seed_all(seed)
    olmo_core.distributed.parallel._WORLD_MESH = None  # a process has one, and trains several times here
    module = parts["train_module"].build(parts["model"].build(init_device="cpu"))
    loader = parts["data_loader"].build(parts["dataset"].build(), dp_process_group=module.dp_process_group)
    trainer = configured.build(module, loader)
    if perturbation is None:
        save_model_and_optim_state(f"{folder}/initial/model_and_optim", module.model)
        text = json.dumps({"run_name": "core"} | {name: part.as_config_dict() for name, part in (parts | {"trainer": saving}).items()})
        for file in ("config.json", "initial/config.json"):
            (folder / file).write_text(text)
    else:
        perturbed(module.model, perturbation, drawn.bf16)
    trainer.fit()
    if perturbation is None:
        shutil.copy(folder / "config.json", folder / f"saved/step{SAVED}")
    return trainer.callbacks["rows"].rows


def exported(harness, run, table):
    done = subprocess.run([harness, "runs", "export", run, "--table", table], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def config_here(harness, drawn, folder):
    """OLMo-core's config in OLMo's keys, with what an import leaves to the user: where the tokens lie, the seed of their order, and what acts on
    gradients that are those of means over tokens."""
    shown = subprocess.run([harness, "runs", "show", folder / "theirs.db", "--json"], capture_output=True, text=True, check=True)
    config = json.loads(shown.stdout)["config"]
    config.pop("olmo_core")
    module = drawn.experiment["train_module"]
    config["data"] |= dict(paths=[f"{folder}/tokens.npy"], seed=drawn.experiment["data_loader"].seed + 1)
    config |= dict(device_train_microbatch_size=module.rank_microbatch_size // drawn.length, save_folder=f"{folder}/ours", save_interval=1000)
    if drawn.skips:  # which is no AdamW to the import, as it leaves out steps
        optim = module.optim
        config["optimizer"] = dict(name="adamw", learning_rate=optim.lr, betas=optim.betas, eps=optim.eps, weight_decay=optim.weight_decay,
                                   decay_norm_and_bias=True, decay_embeddings=optim.group_overrides is None)
    if not drawn.clips:
        labels = (drawn.length - 1) / drawn.length
        config["optimizer"]["eps"] *= labels
        if config.get("max_grad_norm"):
            config["max_grad_norm"] *= labels
    (folder / "ours.json").write_text(json.dumps(config))


def verdict(harness, folder):
    stated = [word for fact in STATED for word in ("--assume", f"{fact}=equal")]
    done = subprocess.run([harness, "report", "parity", folder / "ours", folder / "theirs.db", "--kind", "trajectory", "--json", *stated],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["verdict"]


def train_here(harness, drawn, rows, folder):
    """The steps by the harness, those after OLMo-core's last checkpoint but one, and the verdict on both runs."""
    run = lambda *words: random_trainings.run_harness([harness, *words])
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("runs", "import", folder / "log.jsonl", "--config", folder / "config.json", "--db", folder / "theirs.db", "--tokens-per-step",
        drawn.batch * drawn.length)
    config_here(harness, drawn, folder)
    run("train", folder / "ours.json", f"load_weights={folder}/initial", "--run-dir", folder / "ours", "threads=1")
    steps = exported(harness, folder / "ours", "steps")
    more = []
    if drawn.clips:
        run("checkpoint", "import", folder / f"saved/step{SAVED}", "--to", folder / "theirs")
        run("train", folder / "ours.json", f"load_path={folder}/theirs/step{SAVED}", "--run-dir", folder / "more", "threads=1")
        more = exported(harness, folder / "more", "steps")
    return steps, more, verdict(harness, folder)


def distance(a, b):
    """Of rows of OLMo-core's names; NaN is as far as can be."""
    apart = lambda name, scale=lambda y: 1: max(abs(x[name] - y[name]) / scale(y[name]) for x, y in zip(a, b))
    found = {"loss": apart("train/CE loss")}
    if "optim/total grad norm" in b[0]:
        found["gradient norm"] = apart("optim/total grad norm", lambda norm: norm)
    return found


def in_their_words(steps, length):
    """As means over labels, of which an instance has one less than tokens."""
    return [{"step": row["step"], "train/CE loss": row["ce_loss_per_label"], "optim/LR (group 0)": row["lr"],
             "optim/total grad norm": row["grad_norm"] * length / (length - 1)} for row in steps]


def unequal(found, rows):
    if [row["step"] for row in found] != [row["step"] for row in rows]:
        return [f"steps {[row['step'] for row in found]}, the reference {[row['step'] for row in rows]}"]
    name = "optim/LR (group 0)"
    return [f"step {y['step']}: learning rate {x[name]}, the reference {y[name]}" for x, y in zip(found, rows)
            if not math.isclose(x[name], y[name], rel_tol=1e-12)]


def kind_of(drawn):
    model = drawn.experiment["model"]
    kind = "OLMo 3" if model.block.sequence_mixer.sliding_window else "OLMo 2"
    return ", ".join([kind, *(["YaRN"] if model.block_overrides else []), "amp_bf16" if drawn.bf16 else "fp32"])


@contextlib.contextmanager
def alone():
    """A process that OLMo-core takes for the only one of a training."""
    from olmo_core.train import prepare_training_environment, teardown_training_environment

    os.environ |= dict(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", FS_LOCAL_RANK="0", NUM_NODES="1", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(20000 + os.getpid() % 10000))
    prepare_training_environment(backend="gloo")
    try:
        yield
    finally:
        teardown_training_environment()


def compare_in(harness, seed, folder):
    import numpy as np

    drawn = random_experiment(seed, folder)
    ids = np.random.default_rng(seed).integers(0, 4, drawn.instances * drawn.length).cumsum() % 125
    ids.astype(np.uint16).tofile(folder / "tokens.npy")
    rows = train_there(drawn, folder, seed)
    steps, more, told = train_here(harness, drawn, rows, folder)
    found = in_their_words(steps, drawn.length)
    after = in_their_words(more, drawn.length)
    wrong = unequal(found, rows) + (unequal(after, rows[SAVED:]) if drawn.clips else [])
    result = Result(seed, kind_of(drawn), len(rows), wrong, {}, {}, told)
    if wrong:
        return result
    apart, others = distance(found, rows), []

    def judged(repeats):
        others.extend(distance(train_there(drawn, folder, seed, repeat), rows) for repeat in repeats)
        return result._replace(distance=apart, spread={name: max(FLOOR[name], *(other[name] for other in others)) for name in apart})

    few = judged(range(REPEATS))
    whole = judged(range(REPEATS, REPEATS + MORE)) if is_far(few) else few
    if drawn.clips:
        apart["loss after a checkpoint"] = distance(after, rows[SAVED:])["loss"]
        whole.spread["loss after a checkpoint"] = whole.spread["loss"]
    return whole


def compare(harness, seed):
    import torch

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"against-olmo-core-{seed}-"))
    try:
        with alone():
            return compare_in(harness, seed, folder)
    except random_trainings.Ended as ended:
        return Result(seed, "?", 0, [str(ended).replace(f"{folder}/", "")], {}, {}, "")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_far(result):
    """One that is no number is far, too."""
    differs = result.verdict not in ("EQUIVALENT", "CONSISTENT", "INCONCLUSIVE", "DIFFERENT_NEGLIGIBLE")
    return bool(result.wrong) or (differs and result.spread["loss"] < STEADY) or not all(ratio <= LIMIT for ratio in ratios(result).values())


def table(results):
    quantities = list(FLOOR)
    lines = [row(["model", "trainings", "steps", *quantities, "verdicts"]), row(["---"] * (4 + len(quantities)))]
    for kind in sorted({result.kind for result in results}):
        held = [result for result in results if result.kind == kind]
        cells = []
        for name in quantities:
            shares = [(ratios(result)[name], result.distance[name]) for result in held if name in result.distance]
            median, largest = (statistics.median(share for share, _ in shares), max(share for share, _ in shares)) if shares else (0, 0)
            cells.append(f"{median:.2f}, {largest:.2f} ({max(apart for _, apart in shares):.0e})" if shares else "–")
        verdicts = collections.Counter(result.verdict for result in held)
        lines.append(row([kind, str(len(held)), str(sum(result.steps for result in held)), *cells,
                          ", ".join(f"{count} {name}" for name, count in verdicts.most_common())]))
    return lines


def report(results, versions, command):
    far = [result for result in results if is_far(result)]
    lines = [
        "# Random trainings against OLMo-core's own trainer", "",
        f"Made by `{command}` on {datetime.date.today()} with {versions}; do not edit.", "",
        f"{len(results)} random experiments were trained by OLMo-core and, from what `runs import` tells of its config, by the harness: "
        + ("**none is further from the reference than it may be**." if not far else f"**{len(far)} are further from the reference than they may be**."),
        "Learning rates are equal in every step. OLMo-core saves no checkpoint before the first step, as torch would count that as an update.", "",
        "A cell has the median and the largest distance between both, as a multiple of how far OLMo-core comes from itself, and the largest distance",
        f"itself. A training is too far at {LIMIT} times. How far OLMo-core comes from itself is the largest of {REPEATS} runs whose initial weights differ by half an",
        f"ulp, under amp_bf16 (bf16 copies by FSDP2) by an eighth of an ulp of bf16; of {REPEATS + MORE} runs where few are not enough. Losses are in nats, means over labels; the",
        "gradient norm is relative. `loss after a checkpoint` is that of trainings which went on from a checkpoint of OLMo-core's. OLMo-core counts as at least so far from itself: "
        + ", ".join(f"{name} {floor:.0e}" for name, floor in FLOOR.items()) + ".",
        f"Verdicts are those of `report parity` with {', '.join(f'`--assume {fact}=equal`' for fact in STATED)}: CONSISTENT where",
        "SkipStepAdamW, which AdamW is not, leaves keys unknown. INCONCLUSIVE and DIFFERENT are right where OLMo-core itself comes as far from itself:",
        f"a verdict of a difference is wrong where it stays within {STEADY:.0e} nats.", "", *table(results), ""]
    if far:
        lines += ["## Too far", "", *(f"- seed {result.seed}, {result.kind}: " + ("; ".join(result.wrong[:3]) or ", ".join(
            [result.verdict, *(f"{name} {ratio:.1f}" for name, ratio in ratios(result).items() if ratio > LIMIT)])) for result in far), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 60), metavar=("FIRST", "LAST"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "reports" / "against_olmo_core.md")
    options = parser.parse_args()
    harness = str(pathlib.Path(options.harness).resolve())
    seeds = range(options.seeds[0], options.seeds[1] + 1)
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        results = []
        for result in pool.map(compare, [harness] * len(seeds), seeds):
            results.append(result)
            told = "; ".join(result.wrong[:2]) or ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(result).items())
            print(f"{result.seed} {result.kind}, {result.steps} steps, {result.verdict}: {told}", flush=True)
    command = f"scripts/against_olmo_core.py HARNESS --seeds {seeds[0]} {seeds[-1]}"
    options.output.write_text(report(results, versions_of(harness, "ai2-olmo-core"), command))
    sys.exit(1 if any(map(is_far, results)) else 0)


if __name__ == "__main__":
    main()
