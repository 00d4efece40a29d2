"""Makes tests/data/train/olmo_core_checkpoint: a checkpoint of OLMo-core's trainer, and the steps that follow it there.

Needs: pip install ai2-olmo-core==3.0.0 torch==2.11.0 numpy
Run:   python3 tests/goldens/make_olmo_core_training.py

after.json has the steps after the checkpoint: step, tokens, learning rate, loss and gradient norm. The tokens are token_ids() of make_trajectory.py.
Every gradient is clipped, so that it is the same whether losses are means over labels, as here, or over tokens. The checkpoint is OLMo-core's as it
is, but for its data_paths.txt and the paths in config.json.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import tempfile

import numpy as np
from olmo_core.data import NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig
from olmo_core.nn.transformer import TransformerConfig
from olmo_core.optim import AdamWConfig, CosWithWarmup, OptimGroupOverride
from olmo_core.train import Duration, TrainerConfig, prepare_training_environment, teardown_training_environment
from olmo_core.train.callbacks import Callback, CheckpointerCallback, ConfigSaverCallback
from olmo_core.train.train_module import TransformerTrainModuleConfig
from olmo_core.utils import seed_all

OUT = pathlib.Path(__file__).resolve().parent.parent / "data/train/olmo_core_checkpoint"
SAVED, MORE = 8, 13  # an epoch has 6 steps
LENGTH, BATCH = 32, 8


@dataclasses.dataclass
class Rows(Callback):
    rows: list = dataclasses.field(default_factory=list)

    def log_metrics(self, step, metrics):
        if step > SAVED:
            self.rows.append(dict(step=step, tokens=step * BATCH * LENGTH, lr=metrics["optim/LR (group 0)"],
                                  ce_loss=metrics["train/CE loss"], total_grad_norm=metrics["optim/total grad norm"]))


def token_ids():
    i = np.arange(LENGTH * 52, dtype=np.uint64)
    return ((i * i * np.uint64(2654435761) % np.uint64(2**32) >> np.uint64(16)) % np.uint64(126)).astype(np.uint16)


def experiment(folder):
    model = TransformerConfig.llama_like(
        d_model=16, vocab_size=128, n_heads=2, n_kv_heads=1, n_layers=1, hidden_size_multiple_of=8, qk_norm=True,
        block_name="reordered_norm", layer_norm_eps=1e-6)
    tokenizer = TokenizerConfig(vocab_size=126, eos_token_id=125, pad_token_id=125, identifier="no/such-tokenizer")
    dataset = NumpyFSLDatasetConfig(paths=[f"{folder}/tokens.npy"], sequence_length=LENGTH, tokenizer=tokenizer,
                                    work_dir=f"{folder}/work", dtype="uint16")
    optim = AdamWConfig(lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1,
                        group_overrides=[OptimGroupOverride(params=["embeddings.weight"], opts=dict(weight_decay=0.0))])
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=4 * LENGTH, max_sequence_length=LENGTH, optim=optim, max_grad_norm=0.05,
        z_loss_multiplier=1e-5, scheduler=CosWithWarmup(warmup=3))
    trainer = TrainerConfig(save_folder="saved", metrics_collect_interval=1, max_duration=Duration.steps(MORE),
                            work_dir=f"{folder}/work")
    return dict(model=model, dataset=dataset, data_loader=NumpyDataLoaderConfig(global_batch_size=BATCH * LENGTH, seed=33),
                train_module=module, trainer=trainer)


def train(folder):
    os.chdir(folder)  # .metadata has the path that it is given
    token_ids().tofile(f"{folder}/tokens.npy")
    parts = experiment(folder)
    callbacks = dict(rows=Rows(), config_saver=ConfigSaverCallback(save_data_paths=False),
                     checkpointer=CheckpointerCallback(save_interval=SAVED, save_async=False))
    configured = parts["trainer"]
    for name, callback in callbacks.items():
        configured = configured.with_callback(name, callback)
    seed_all(6198)
    module = parts["train_module"].build(parts["model"].build(init_device="cpu"))
    loader = parts["data_loader"].build(parts["dataset"].build(), dp_process_group=module.dp_process_group)
    trainer = configured.build(module, loader)
    text = json.dumps({"run_name": "core"} | {name: part.as_config_dict() for name, part in parts.items()})
    trainer.callbacks["config_saver"].config = json.loads(text.replace(folder, "/data"))
    trainer.fit()
    return trainer.callbacks["rows"].rows


def main():
    os.environ |= dict(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", FS_LOCAL_RANK="0", NUM_NODES="1",
                       MASTER_ADDR="127.0.0.1", MASTER_PORT="29716")
    prepare_training_environment(backend="gloo")
    shutil.rmtree(OUT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = train(folder)
        shutil.copytree(f"{folder}/saved/step{SAVED}", OUT)
    (OUT / ".metadata.json").unlink()
    (OUT / "after.json").write_text(json.dumps(rows, indent=0) + "\n")
    teardown_training_environment()


if __name__ == "__main__":
    main()
