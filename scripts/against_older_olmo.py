#!/usr/bin/env python3
"""Trains random small models by older versions of OLMo's own trainer and by the harness, from the same weights and tokens; makes
reports/against_older_olmo.md.

Needs: pip install 'ai2-olmo[train]==0.6.0' torch==2.11.0 numpy==2.4.6 h5py, whose packages the older versions use, too; they are fetched by pip
Run:   scripts/against_older_olmo.py HARNESS [--versions VERSION…] [--seeds FIRST LAST] [--output FILE]

OLMo 1B and 7B were trained by versions before 0.4. A seed decides a config, as for scripts/against_olmo.py, in fp32; keys and words that a version
does not know are left out for both. Versions before 0.4 divide the losses of an instance of T tokens by its T - 1 labels: their losses and gradients
are T/(T - 1) times those of the harness, which is given (T - 1)/T of their `max_grad_norm` and `eps`. Versions before 0.5 end a duration in tokens
with the last whole step: it is made one of whole steps. Versions before 0.3 take the z-loss of the last position, too: they train without it. Not
drawn are label masks, attention within documents and a smaller last micro-batch. Learning rates must be equal. Exits 1 if a training is more than
LIMIT times as far from the reference as the reference is from itself when its initial weights differ by half an ulp. Before it is called so, the
reference is run MORE times, as by scripts/against_olmo.py.
"""
import argparse
import collections
import contextlib
import dataclasses
import datetime
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import against_olmo
import random_trainings

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = ("0.2.5", "0.3.0", "0.4.0", "0.5.1")
LOSSES_OF_TOKENS = "0.4"  # the first version that divides by tokens
Z_LOSS_OF_LABELS = "0.3"  # the first version whose z-loss leaves out the last position of an instance
SCHEDULES = ("cosine_with_warmup", "linear_with_warmup", "inverse_sqrt_with_warmup")  # all versions know them
QUANTITIES = ("loss", "gradient norm", "weights")
REPEATS = 6

Result = collections.namedtuple("Result", "seed steps wrong distance spread")


# ---------------------------------------------------------------- in a process of its own for each version


class Reference:
    """A version of OLMo's trainer, the first one that Python finds."""

    def __init__(self):
        import olmo.model
        if not hasattr(olmo.model, "OLMo"):
            olmo.model.OLMo = olmo.model.Olmo  # its name before 0.3
        import make_trajectory
        import olmo.config
        import olmo.data
        import olmo.optim
        import olmo.train
        import torch
        import trajectory_spread
        self.olmo, self.torch, self.trajectory, self.perturbed = olmo, torch, make_trajectory, trajectory_spread.perturbed
        torch.set_num_threads(1)
        # The trainer asks for the autocast of a GPU, and for the place of a process among others.
        torch.autocast = lambda *_, **__: contextlib.nullcontext()
        torch.distributed.get_rank, torch.distributed.get_world_size = lambda *_: 0, lambda *_: 1
        os.environ |= dict(RANK="0", LOCAL_RANK="0", FS_LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1")

    def known(self, settings, kind=None):
        """`settings` without what the version has no key or word for."""
        kind = kind or self.olmo.config.TrainConfig
        parts = dict(model="ModelConfig", optimizer="OptimizerConfig", scheduler="SchedulerConfig", data="DataConfig", tokenizer="TokenizerConfig")
        names = {field.name for field in dataclasses.fields(kind)}
        return {name: self.known(value, getattr(self.olmo.config, parts[name])) if name in parts and isinstance(value, dict) else value
                for name, value in settings.items() if name in names}

    def load(self, file):
        return self.trajectory.filled_in(self.olmo.config.TrainConfig.load(file))

    def initial_weights(self, file, seed):
        self.torch.manual_seed(seed)
        model = self.olmo.model.OLMo(self.load(file).model)
        model.reset_parameters()
        return {name: weight.detach().clone() for name, weight in model.state_dict().items()}

    def trainer(self, cfg, weights):
        model = self.olmo.model.OLMo(cfg.model)
        model.load_state_dict(weights)
        wrapped = self.trajectory.OneProcess(model)
        fields = {field.name for field in dataclasses.fields(self.olmo.train.Trainer)}
        return self.olmo.train.Trainer(
            cfg=cfg, model=model, optim=self.olmo.optim.build_optimizer(cfg, wrapped), scheduler=self.olmo.optim.build_scheduler(cfg),
            train_loader=self.olmo.data.build_train_dataloader(cfg), device=self.torch.device("cpu"), evaluators=[], epoch=0,
            **{"dist_model" if "dist_model" in fields else "fsdp_model": wrapped})

    def train(self, file, weights):
        """The facts of every step, and the weights at the end."""
        trainer, steps, epoch = self.trainer(self.load(file), weights), [], 0
        parameters = list(trainer.model.parameters())
        clip = trainer.optim.clip_grads_and_collect_metrics

        def clip_and_keep_norm(*arguments, **settings):
            norms = [parameter.grad.double().square().sum() for parameter in parameters if parameter.grad is not None]
            steps.append(dict(norm=float(sum(norms)) ** 0.5))
            return clip(*arguments, **settings)

        trainer.optim.clip_grads_and_collect_metrics = clip_and_keep_norm
        while len(steps) < trainer.max_steps:
            for batch in trainer.train_loader:
                trainer.global_step += 1
                trainer.global_train_tokens_seen += batch["input_ids"].numel()
                metrics = trainer.train_step(batch, reduce_global_loss=False)
                steps[-1].update(loss=metrics["train/CrossEntropyLoss"], lr=trainer.optim.param_groups[0]["lr"])
                if len(steps) == trainer.max_steps:
                    break
            epoch += 1
            trainer.epoch = epoch
            reshuffle = trainer.train_loader.dataset.reshuffle
            reshuffle(*[epoch][:reshuffle.__func__.__code__.co_argcount - 1])
        return steps, {name: weight.double() for name, weight in trainer.model.state_dict().items()}


def drawn_config(seed):
    """None if the seed's training is of a kind that older versions train otherwise."""
    drawn = random_trainings.random_training(seed)
    config = drawn.config
    if (drawn.masked or "generate_doc_lengths" in config["data"] or config["data"].get("memmap_dtype", "uint16") != "uint16"
            or config["global_train_batch_size"] % config["device_train_microbatch_size"]):
        return None
    config["precision"] = "fp32"
    for name in ("distributed_strategy", "fsdp", "ddp", "auxiliary_loss_multiplier"):
        config.pop(name, None)
    if config["scheduler"]["name"] not in (*SCHEDULES, "constant"):
        config["scheduler"]["name"] = SCHEDULES[seed % 3]
    duration = str(config["max_duration"])
    if duration.endswith("T"):
        batch = config["global_train_batch_size"] * config["model"]["max_sequence_length"]
        config["max_duration"] = f"{max(1, int(float(duration[:-1])) // batch) * batch}T"
    return drawn


def scaled(config, share):
    """The config by which gradients that are `share` of the reference's change weights as those do."""
    config = json.loads(json.dumps(config))
    config["optimizer"]["eps"] = config["optimizer"].get("eps", 1e-5) * share
    if config.get("max_grad_norm") is not None:
        config["max_grad_norm"] *= share
    return config


def distance(a, b, initial):
    """As against_olmo.distance: the largest over steps; that of weights as a share of what training changed."""
    size = lambda tensors: sum(float(tensor.square().sum()) for tensor in tensors) ** 0.5
    moved = size(b[1][name] - initial[name].double() for name in b[1])
    return {
        "loss": max(abs(x["loss"] - y["loss"]) for x, y in zip(a[0], b[0])),
        "gradient norm": max(abs(x["norm"] - y["norm"]) / (y["norm"] or 1) for x, y in zip(a[0], b[0])),
        "weights": size(a[1][name] - b[1][name] for name in b[1]) / (moved or 1),
    }


def judged(result, others):
    """The result with how far the others are from the reference."""
    return result._replace(spread={name: max(against_olmo.FLOOR[name], *(other[name] for other in others)) for name in QUANTITIES})


def compare(reference, harness, version, seed, folder):
    """A Result; None where the seed draws nothing for the version, and a sentence where the harness refuses it."""
    import yaml
    drawn = drawn_config(seed)
    if drawn is None:
        return None
    config = reference.known(yaml.safe_load(random_trainings.write_files(drawn, seed, folder).read_text()))
    if version < Z_LOSS_OF_LABELS:
        config.pop("softmax_auxiliary_loss", None)
    length = config["model"]["max_sequence_length"]
    share = (length - 1) / length if version < LOSSES_OF_TOKENS else 1.0
    theirs, ours = folder / "theirs.yaml", folder / "ours.yaml"
    theirs.write_text(yaml.safe_dump(config, sort_keys=False))
    ours.write_text(yaml.safe_dump(scaled(config, share), sort_keys=False))
    initial = reference.initial_weights(theirs, seed)
    reference.torch.save(initial, folder / "initial.pt")
    steps, _ = against_olmo.run_here(harness, ours, f"load_weights={folder}/initial.pt", folder / "run", 1)
    found = ([dict(loss=step["ce_loss"] / share, norm=step["grad_norm"] / share, lr=step["lr"]) for step in steps],
             against_olmo.tensors(folder / "run" / "latest", "model"))
    expected = reference.train(theirs, initial)
    wrong = [f"{len(found[0])} steps, the reference {len(expected[0])}"] if len(found[0]) != len(expected[0]) else [
        f"step {i}: lr {x['lr']}, the reference {y['lr']}" for i, (x, y) in enumerate(zip(found[0], expected[0]), 1)
        if abs(x["lr"] - y["lr"]) > 1e-12 * y["lr"]]
    if wrong:
        return Result(seed, len(expected[0]), wrong, {}, {})

    def apart(numbers):
        """How far the reference ends from itself."""
        return [distance(reference.train(theirs, reference.perturbed(initial, number)), expected, initial) for number in numbers]

    others = apart(range(REPEATS))
    result = judged(Result(seed, len(expected[0]), [], distance(found, expected, initial), {}), others)
    if against_olmo.is_far(result):
        result = judged(result, others + apart(range(REPEATS, REPEATS + against_olmo.MORE)))
    return result


def work(harness, version, seeds):
    """Prints a line of JSON for each seed that draws something."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    reference = Reference()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix=f"against-olmo-{version}-") as folder:
            try:
                result = compare(reference, harness, version, seed, pathlib.Path(folder))
            except random_trainings.Ended as ended:
                if ended.code != random_trainings.USAGE_ERROR:
                    raise
                continue  # what the harness does not support
            if result:
                print(json.dumps(result), flush=True)


# ---------------------------------------------------------------- the report


def results_of(harness, version, seeds, folder):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, f"ai2-olmo=={version}"], check=True)
    paths = os.pathsep.join([str(folder), str(ROOT / "scripts"), str(ROOT / "tests" / "goldens")])
    command = [sys.executable, __file__, harness, "--worker", version, "--seeds", *map(str, seeds)]
    results = []
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True) as worker:
        for line in worker.stdout:
            results.append(Result(*json.loads(line)))
            told = "; ".join(results[-1].wrong[:2]) or ", ".join(f"{name} {ratio:.2f}" for name, ratio in against_olmo.ratios(results[-1]).items())
            print(f"{version} {results[-1].seed}, {results[-1].steps} steps: {told}", flush=True)
    if worker.returncode != 0:
        sys.exit(f"the trainings by OLMo {version} ended with {worker.returncode}")
    return results


def table(found):
    lines = [against_olmo.row(["OLMo", "trainings", "steps", *QUANTITIES]), against_olmo.row(["---"] * (3 + len(QUANTITIES)))]
    for version, results in found.items():
        held = [result for result in results if result.distance]
        cells = (against_olmo.cell(held, name) for name in QUANTITIES)
        lines.append(against_olmo.row([version, str(len(held)), str(sum(result.steps for result in held)), *cells]))
    return lines


def report(found, versions, command):
    far = [(version, result) for version, results in found.items() for result in results if against_olmo.is_far(result)]
    return "\n".join([
        "# Random trainings against older versions of OLMo's own trainer", "",
        f"Made by `{command}` on {datetime.date.today()} with {versions}; do not edit.", "",
        f"{sum(map(len, found.values()))} random trainings in fp32 were done by both, from the same weights and tokens: "
        + ("**none is further from the reference than it may be**." if not far else f"**{len(far)} are further from the reference than they may be**."),
        "OLMo 1B and 7B were trained by versions before 0.4, which divide the losses of an instance of T tokens by its T - 1 labels. So their losses and",
        "gradient norms are compared with T/(T - 1) times those of the harness, whose `max_grad_norm` and `optimizer.eps` are (T - 1)/T of theirs. Versions",
        "before 0.5 end a duration in tokens with the last whole step, later ones and the harness with the step that reaches it: here it has whole steps.",
        "Versions before 0.3 take the z-loss of the last position of an instance, too; they were compared without it.",
        "Learning rates are equal in every step." if not any(result.wrong for _, result in far) else "", "",
        "A cell has the median and the largest distance between both, as a multiple of how far the reference comes from itself when its initial weights",
        f"differ by half an ulp ({REPEATS} runs, and {against_olmo.MORE} more where these are too few), and the largest distance itself. A training is too far at {against_olmo.LIMIT} times. Losses are in nats, the gradient norm is",
        "relative, weights are those after the last step, relative to how far training moved them. The reference counts as at least so far from itself: "
        + ", ".join(f"{name} {against_olmo.FLOOR[name]:.0e}" for name in QUANTITIES) + ".", "", *table(found), "",
        *(f"- {version}, seed {result.seed}: " + ("; ".join(result.wrong[:3]) or ", ".join(f"{name} {ratio:.1f}" for name, ratio in against_olmo.ratios(result).items()))
          for version, result in far), *([""] if far else [])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("--versions", nargs="+", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 60), metavar=("FIRST", "LAST"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "reports" / "against_older_olmo.md")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    harness = str(pathlib.Path(options.harness).resolve())
    if options.worker:
        return work(harness, options.worker, range(options.seeds[0], options.seeds[1] + 1))
    found = {}
    for version in options.versions:
        with tempfile.TemporaryDirectory() as folder:
            found[version] = results_of(harness, version, options.seeds, folder)
    command = f"scripts/against_older_olmo.py HARNESS --seeds {options.seeds[0]} {options.seeds[1]}"
    options.output.write_text(report(found, against_olmo.versions_of(harness), command))
    sys.exit(1 if any(against_olmo.is_far(result) for results in found.values() for result in results) else 0)


if __name__ == "__main__":
    main()
