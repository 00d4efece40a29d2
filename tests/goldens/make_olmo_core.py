"""Makes tests/data/train/olmo_core/: tiny models as OLMo-core saves them, with the logits that it computes from them.

Needs: pip install ai2-olmo-core==3.0.0 torch==2.11.0 safetensors
Run:   python3 tests/goldens/make_olmo_core.py

  olmo2/                 grouped queries, tied, of an experiment whose train_module tells the length of sequences
  olmo3/                 sliding attention, the layers without a window scaled by YaRN (block_overrides), whose dataset tells it
  expected.safetensors   ids, and the logits of each

Each is saved by save_model_and_optim_state() of RANKS processes that have it in shards (FSDP2); config.json has of an experiment's config
what tells of the model.
"""

import json
import os
import pathlib
import shutil

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from olmo_core.distributed.checkpoint import save_model_and_optim_state
from olmo_core.nn.attention import SlidingWindowAttentionConfig
from olmo_core.nn.rope import YaRNRoPEScalingConfig
from olmo_core.nn.transformer import TransformerConfig
from safetensors.torch import save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

OUT = pathlib.Path(__file__).resolve().parent.parent / "data/train/olmo_core"
RANKS = 2
IDS = torch.arange(30)[None] * 7 % 60
SIZES = dict(d_model=16, vocab_size=64, n_heads=4, hidden_size_multiple_of=8, qk_norm=True, block_name="reordered_norm")


def olmo2():
    config = TransformerConfig.llama_like(**SIZES, n_layers=2, n_kv_heads=2, rope_theta=500000, layer_norm_eps=1e-6)
    config.tie_word_embeddings = True
    return config, {"train_module": {"max_sequence_length": 32}, "dataset": {}}


def olmo3():
    config = TransformerConfig.llama_like(**SIZES, n_layers=3, rope_theta=10000, layer_norm_eps=1e-5)
    config.block.sequence_mixer.sliding_window = SlidingWindowAttentionConfig(
        pattern=[7, 7, -1], force_full_attention_on_first_layer=False, force_full_attention_on_last_layer=True)
    config = config.with_rope_scaling(YaRNRoPEScalingConfig(factor=4.0, beta_fast=4, beta_slow=1, old_context_len=16))
    return config, {"train_module": {}, "dataset": {"sequence_length": 48}}


def weights(model):
    generator = torch.Generator().manual_seed(6198)
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(drawn * 0.2 if parameter.dim() > 1 else 1 + drawn * 0.3)
    return model


def save(rank, name):
    os.environ |= dict(RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(RANKS), FS_LOCAL_RANK=str(rank),
                       NUM_NODES="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29715")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    model = weights(globals()[name]()[0].build(init_device="cpu"))
    mesh = init_device_mesh("cpu", (RANKS,))
    for block in model.blocks.values():
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    os.chdir(OUT)  # .metadata has the path that it is given
    save_model_and_optim_state(f"{name}/model_and_optim", model)
    dist.destroy_process_group()


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    expected = {"ids": IDS}
    for name in ("olmo2", "olmo3"):
        (OUT / name / "model_and_optim").mkdir(parents=True)
        config, experiment = globals()[name]()
        experiment["dataset"]["tokenizer"] = dict(identifier="no/such-tokenizer", vocab_size=60, eos_token_id=59, pad_token_id=1)
        text = json.dumps({"run_name": name, "model": config.as_config_dict()} | experiment, indent=2)
        (OUT / name / "config.json").write_text(text + "\n")
        with torch.no_grad():
            expected[name] = weights(config.build(init_device="cpu"))(IDS).float()
        mp.spawn(save, args=(name,), nprocs=RANKS)
    save_file(expected, OUT / "expected.safetensors")


if __name__ == "__main__":
    main()
