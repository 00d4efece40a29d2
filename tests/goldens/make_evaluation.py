"""Writes tests/data/eval/golden: a small model, data of the eight tasks, and what the references score on them.

The documents are made up (evaluation_texts.py); the folder has the layout of the fetched data: `data/hf_datasets` written by
`datasets`, `data/oe_eval_tasks/TASK/rc_0shot` as oe-eval freezes its requests. Contexts are cut to LENGTH tokens. In
`expected.jsonl` a line is one of

    {"kind": "option", "convention", "task", "doc_id", "cont_id", "label", counts, "logprob", …}   sums in nats, fp32
    {"kind": "task", "convention", "task", "n", "metrics": {…}}
    {"kind": "document", …}    Catwalk's windows
    {"kind": "instances", …}   in-loop perplexity of tokens.npy

by: `olmo` OLMo's in-loop classes with ICLMetric; `oe` OEEvalTask on the request files with ICLMetric; `lm-eval`
ConfigurableTask and HFLM.loglikelihood on the transformers model; documents by lm_eval's rolling windows. ce_loss and bpb are
those of the right continuations; `pmi_dc_olmo` is OLMo's pmi_dc, which divides by a sum of logits.
Needs: ai2-olmo==0.6.0 lm_eval==0.4.13 accelerate tokenizers==0.23.3 torch==2.11.0 transformers==5.17.0.
Run: python3 tests/goldens/make_evaluation.py
"""

import gzip
import io
import json
import math
import pathlib
import re
import shutil

import datasets
import numpy as np
import olmo.eval.downstream as downstream
import torch
import transformers
from evaluation_texts import PERPLEXITY, SOURCES
from lm_eval import utils as lm_eval_utils
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks._yaml_loader import load_yaml
from olmo.config import ActivationType, InitFnType, LayerNormType, ModelConfig
from olmo.model import OLMo
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import OlmoConfig, OlmoForCausalLM, PreTrainedTokenizerFast

OUT = pathlib.Path(__file__).parents[1] / "data/eval/golden"
LENGTH = 96
VOCABULARY, EMBEDDING = 480, 512
EOS, PAD = 0, 1
METRICS = ["acc", "len_norm", "ce_loss", "bpb"]

CLASSES = {
    "arc_easy": downstream.ArcEasy, "arc_challenge": downstream.ArcChallenge, "boolq": downstream.BoolQ,
    "hellaswag": downstream.HellaSwag, "openbook_qa": downstream.OpenBookQA, "piqa": downstream.PIQA,
    "sciq": downstream.SciQ, "winogrande": downstream.WinoGrande,
}
FOLDERS = dict(zip(CLASSES, SOURCES, strict=True))
OE_NAMES = {task: "openbookqa" if task == "openbook_qa" else task for task in CLASSES}
OE_METRICS = {"arc_challenge": "acc_per_char", "hellaswag": "acc_per_char", "openbook_qa": "acc_per_char", "piqa": "acc_per_char"}
LM_EVAL_FILES = {
    "arc_easy": "arc/arc_easy", "arc_challenge": "arc/arc_challenge", "boolq": "super_glue/boolq/default",
    "hellaswag": "hellaswag/hellaswag", "openbook_qa": "openbookqa/openbookqa", "piqa": "piqa/piqa", "sciq": "sciq/sciq",
    "winogrande": "winogrande/default",
}
FEATURES = {
    "piqa/plain_text": {"label": datasets.ClassLabel(names=["0", "1"])},
    "hellaswag/none": {"ind": datasets.Value("int32")},
}


# ---------------------------------------------------------------- tokenizer, model, data


def make_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [text for documents in SOURCES.values() for doc in documents for text in strings_in(doc)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 2, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=["<|endoftext|>", "<|padding|>"], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken("   ", normalized=True), AddedToken("  ", normalized=True)])
    assert tokenizer.get_vocab_size() == VOCABULARY
    return tokenizer


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_in(item)


def make_model() -> OLMo:
    """OLMo 1B's architecture; the weights are larger than a new model's, so that scores differ."""
    torch.manual_seed(5)
    model = OLMo(ModelConfig(
        d_model=32, n_heads=4, n_layers=2, mlp_ratio=4, activation_type=ActivationType.swiglu, rope=True,
        max_sequence_length=LENGTH, include_bias=False, vocab_size=VOCABULARY, embedding_size=EMBEDDING, eos_token_id=EOS,
        pad_token_id=PAD, weight_tying=True, layer_norm_type=LayerNormType.default, layer_norm_with_affine=False,
        attention_layer_norm_with_affine=False, bias_for_layer_norm=False, init_fn=InitFnType.normal, init_std=0.3,
        init_device="cpu", attention_dropout=0.0, residual_dropout=0.0, embedding_dropout=0.0))
    return model.eval()


def to_transformers(model: OLMo) -> OlmoForCausalLM:
    c = model.config
    hf = OlmoForCausalLM(OlmoConfig(
        vocab_size=EMBEDDING, hidden_size=c.d_model, intermediate_size=c.d_model * c.mlp_ratio // 2, num_hidden_layers=c.n_layers,
        num_attention_heads=c.n_heads, max_position_embeddings=LENGTH, tie_word_embeddings=True, eos_token_id=EOS,
        pad_token_id=PAD, bos_token_id=None, dtype="float32"))
    names = {"model.embed_tokens.weight": model.transformer.wte.weight}
    for i, block in enumerate(model.transformer.blocks):
        q, k, v = block.att_proj.weight.chunk(3)
        up, gate = block.ff_proj.weight.chunk(2)
        parts = {"self_attn.q_proj": q, "self_attn.k_proj": k, "self_attn.v_proj": v, "self_attn.o_proj": block.attn_out.weight,
                 "mlp.up_proj": up, "mlp.gate_proj": gate, "mlp.down_proj": block.ff_out.weight}
        names.update({f"model.layers.{i}.{key}.weight": value for key, value in parts.items()})
    state = {key: value.detach().clone() for key, value in names.items()}
    missing, unexpected = hf.load_state_dict(state, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
    ids = torch.arange(3, 3 + LENGTH)[None]
    with torch.no_grad():
        difference = (hf(ids).logits - model(ids).logits).abs().max().item()
    assert difference < 1e-4, difference
    return hf.eval()


def write_datasets() -> None:
    for path, documents in SOURCES.items():
        data = datasets.Dataset.from_list(documents)
        features = data.features.copy()
        features.update(FEATURES.get(path, {}))
        folder = OUT / "data/hf_datasets" / path / "validation"
        data.cast(features).save_to_disk(folder)
        (folder / "state.json").unlink()  # has a random fingerprint; our reader needs neither
        (folder / "dataset_info.json").unlink()


def read_dataset(path, name, split):
    file = OUT / "data/hf_datasets" / path / (name or "none") / split / "data-00000-of-00001.arrow"
    return datasets.Dataset.from_file(str(file), in_memory=True)


def oe_document(task, doc, index):
    """(native id, context or contexts, continuations, gold) as oe-eval's rc_0shot has them."""
    question = f"Question: {doc.get('question', doc.get('question_stem', ''))}\nAnswer:"
    if task.startswith("arc") or task == "openbook_qa":
        key = doc["answerKey"].strip()
        return doc["id"], question, doc["choices"]["text"], doc["choices"]["label"].index(key)
    if task == "boolq":
        return index, f"{doc['passage']}\nQuestion: {doc['question']}?\nAnswer:", ["yes", "no"], int(not doc["answer"])
    if task == "hellaswag":
        clean = downstream.HellaSwag.preprocess
        context = clean(doc["activity_label"] + ": " + doc["ctx_a"] + " " + doc["ctx_b"].capitalize())
        return doc["ind"], context, [clean(ending) for ending in doc["endings"]], int(doc["label"])
    if task == "piqa":
        return index, f"Goal: {doc['goal']}\nAnswer:", [doc["sol1"], doc["sol2"]], doc["label"]
    if task == "sciq":
        options = [doc["distractor1"], doc["distractor2"], doc["distractor3"], doc["correct_answer"]]
        return index, (doc["support"] + "\n" + question).strip(), options, 3
    before, after = doc["sentence"].split("_")
    return None, [before + doc["option1"], before + doc["option2"]], [after.strip()] * 2, int(doc["answer"]) - 1


def write_requests(task) -> None:
    conditional, unconditional = [], []
    for index, doc in enumerate(SOURCES[FOLDERS[task]]):
        native_id, context, options, gold = oe_document(task, doc, index)
        for i, option in enumerate(options):
            request = {
                "request_type": "loglikelihood",
                "doc": {"query": context, "choices": options, "gold": gold},
                "request": {"context": context if isinstance(context, str) else context[i], "continuation": " " + option},
                "idx": i, "task_name": OE_NAMES[task], "doc_id": index, "native_id": native_id, "label": gold,
            }
            conditional.append(request)
            if task not in ("boolq", "winogrande"):
                prompt = {"context": "Answer:", "continuation": " " + option}
                unconditional.append({**request, "request": prompt, "doc_id": 1000000 + index})
    folder = OUT / "data/oe_eval_tasks" / OE_NAMES[task] / "rc_0shot"
    folder.mkdir(parents=True)
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write("".join(json.dumps(row) + "\n" for row in conditional + unconditional).encode())
    (folder / "requests.jsonl.gz").write_bytes(buffer.getvalue())
    config = {"task_name": OE_NAMES[task], "num_instances": len(SOURCES[FOLDERS[task]]), "task_config": {
        "primary_metric": OE_METRICS.get(task, "acc_raw"), "split": "validation", "num_shots": 0,
        "metric_kwargs": {"uncond_docid_offset": 1000000 if unconditional else None}}}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def read_requests(path, name=None, split=None, only_unconditional=False):
    folder = OUT / "data/oe_eval_tasks" / path / name
    with gzip.open(folder / "requests.jsonl.gz", "rt", encoding="utf-8") as file:
        requests = [json.loads(line) for line in file]
    if only_unconditional:
        requests = [{**r, "doc_id": r["doc_id"] - 1000000} for r in requests if r["doc_id"] >= 1000000]
    return json.loads((folder / "config.json").read_text()), requests


# ---------------------------------------------------------------- OLMo's evaluators


class TokenizerOfOlmo:
    """What the classes ask of olmo.tokenizer.Tokenizer, whose checks of special tokens a small vocabulary fails."""

    pad_token_id = PAD

    def __init__(self, tokenizer):
        self.base = tokenizer

    def encode(self, text, add_special_tokens):
        assert not add_special_tokens
        return self.base.encode(text, add_special_tokens=False).ids


def forward(model, ids):
    with torch.no_grad():
        return model(ids).logits


def single(task, sample):
    return task.collate_fn([sample])


def sums_of(model, task, sample):
    """Log-likelihood by ICLMetric of one sample by itself: no padding."""
    batch = single(task, sample)
    metric = downstream.ICLMetric("acc")
    metric.update(batch, forward(model, batch["input_ids"]))
    return metric.loglikelihoods[0][2].item()


def domain_sums(model, sample):
    """(Σ log-probability, Σ raw logit) of the continuation after the domain prompt; at most LENGTH tokens fit."""
    query = sample["dc_query"]
    assert sample["dc_len"] > 0 and len(query) <= LENGTH
    logits = forward(model, torch.tensor([query]))[0][sample["dc_len"] - 1 :]
    index = torch.tensor(sample["continuation"])[:, None]
    return logits.log_softmax(-1).gather(1, index).sum().item(), logits.gather(1, index).sum().item()


def metric_of(model, task, name, samples):
    """The metric over batches as a trainer makes them, padding included."""
    metric = downstream.ICLMetric(name)
    for start in range(0, len(samples), 7):
        batch = task.collate_fn(samples[start : start + 7])
        domain = forward(model, batch["dc_input_ids"]) if name == "pmi_dc" else None
        metric.update(batch, forward(model, batch["input_ids"]), domain)
    return metric.compute().item()


def task_metrics(model, task, names):
    right = [{**s, "cont_id": 0, "label_id": 0} for s in task.samples if s["cont_id"] == s["label_id"]]
    return {name: metric_of(model, task, name, right if name in ("ce_loss", "bpb") else task.samples) for name in names}


def option_row(convention, task, sample):
    return {
        "kind": "option", "convention": convention, "task": task, "doc_id": sample["doc_id"], "cont_id": sample["cont_id"],
        "label": sample["label_id"], "ctx_tokens": len(sample["query"]) - sample["cont_len"] + 1,
        "truncated_tokens": len(sample["ctx"]) + sample["cont_len"] - 1 - len(sample["query"]),
        "cont_tokens": sample["cont_len"], "cont_chars": sample["cont_str_len"], "cont_bytes": sample["cont_byte_len"],
    }


def olmo_rows(model, tokenizer):
    for name, cls in CLASSES.items():
        task = cls(TokenizerOfOlmo(tokenizer))
        for sample in task.samples:
            log_prob, logits = domain_sums(model, sample)
            yield {**option_row("olmo", name, sample), "logprob": sums_of(model, task, sample),
                   "unconditional_logprob": log_prob, "unconditional_logit_sum": logits}
        yield {"kind": "task", "convention": "olmo", "task": name, "n": len(task.dataset), "primary_metric": cls.metric_type,
               "metrics": {**task_metrics(model, task, METRICS),
                           "pmi_dc_olmo": metric_of(model, task, "pmi_dc", task.samples)}}


def oe_rows(model, tokenizer):
    def load(path, metric, only_unconditional=False):
        downstream.load_oe_eval_requests = lambda *args: read_requests(*args, only_unconditional=only_unconditional)
        return downstream.OEEvalTask(TokenizerOfOlmo(tokenizer), path, "rc_0shot", model_ctx_len=LENGTH, metric_type=metric)

    downstream.OEEvalTask.metric_type = None  # the class reads it before it sets it
    for name, path in OE_NAMES.items():
        task = load(path, "acc")
        alone = load(path, "acc", True)
        unconditional = {(s["doc_id"], s["cont_id"]): sums_of(model, alone, s) for s in alone.samples}
        for sample in task.samples:
            row = {**option_row("oe", name, sample), "logprob": sums_of(model, task, sample)}
            if unconditional:
                row["unconditional_logprob"] = unconditional[sample["doc_id"], sample["cont_id"]]
            yield row
        metrics = {metric: metric_of(model, load(path, metric), metric, load(path, metric).samples) for metric in METRICS}
        yield {"kind": "task", "convention": "oe", "task": name, "n": len(SOURCES[FOLDERS[name]]),
               "primary_metric": load(path, None).metric_type, "metrics": metrics}


# ---------------------------------------------------------------- lm-eval


def lm_eval_rows(hf, tokenizer):
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|padding|>")
    lm = HFLM(pretrained=hf, tokenizer=fast, batch_size=4, max_length=LENGTH, device="cpu")
    root = pathlib.Path(lm_eval_utils.__file__).parent / "tasks"
    for name, file in LM_EVAL_FILES.items():
        task = lm_eval_task(root / f"{file}.yaml", name)
        task.build_all_requests()
        requests = task.instances
        scores = lm.loglikelihood(requests, disable_tqdm=True)
        by_doc: dict = {}
        for request, score in zip(requests, scores, strict=True):
            by_doc.setdefault(request.doc_id, []).append((request, score))
        totals: dict = {}
        for doc_id, entries in by_doc.items():
            doc = entries[0][0].doc
            count = len(entries) if name == "winogrande" else len(entries) // 2
            label = task.doc_to_text(doc) if name == "winogrande" else task.doc_to_target(doc)
            for i in range(count):
                request, (log_prob, is_greedy) = entries[i]
                context, continuation = request.args
                ctx, cont = lm._encode_pair(context, continuation)
                used = len((ctx + cont)[-(LENGTH + 1) :]) - len(cont)
                row = {"kind": "option", "convention": "lm-eval", "task": name, "doc_id": doc_id, "cont_id": i,
                       "label": int(label), "ctx_tokens": used, "truncated_tokens": len(ctx) - used, "cont_tokens": len(cont),
                       "cont_chars": len(continuation) - 1, "cont_bytes": len(continuation[1:].encode()),
                       "logprob": log_prob, "is_greedy": bool(is_greedy)}
                if name != "winogrande":
                    row["unconditional_logprob"] = entries[count + i][1][0]
                yield row
            for metric, value in task.process_results(doc, [score for _, score in entries]).items():
                totals.setdefault(metric, []).append(value)
        yield {"kind": "task", "convention": "lm-eval", "task": name, "n": len(by_doc),
               "metrics": {metric: sum(values) / len(values) for metric, values in totals.items()}}


def lm_eval_task(file, name):
    config = load_yaml(file, resolve_func=True)
    metrics = ["acc"] if name == "winogrande" else ["acc", "acc_norm", "acc_bytes", "acc_mutual_info"]
    config.update(metric_list=[{"metric": metric} for metric in metrics], training_split=None, test_split=None,
                  custom_dataset=lambda **_: {"validation": lm_eval_documents(name)})
    config.pop("tag", None)
    config.pop("metadata", None)
    return ConfigurableTask(config=config)


def lm_eval_documents(name):
    data = read_dataset(*FOLDERS[name].rsplit("/", 1), "validation")
    if name == "boolq":  # super_glue's has the answer as a class
        data = data.map(lambda doc: {"label": int(doc["answer"])})
    return data


# ---------------------------------------------------------------- perplexity


def window_nll(model, tokens):
    total, windows = 0.0, 0
    pairs = lm_eval_utils.get_rolling_token_windows(token_list=tokens, prefix_token=EOS, max_seq_len=LENGTH, context_len=1)
    for context, predicted in map(lm_eval_utils.make_disjoint_window, pairs):
        ids = torch.tensor([(context + predicted)[:-1]])
        log_probs = forward(model, ids)[0].log_softmax(-1)[-len(predicted) :]
        total -= log_probs.gather(1, torch.tensor(predicted)[:, None]).sum().item()
        windows += 1
    return total, windows


def document_rows(model, tokenizer):
    for index, doc in enumerate(PERPLEXITY):
        text = doc["text"]
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        nll, windows = window_nll(model, tokens)
        yield {"kind": "document", "index": index, "document": doc["id"], "source": doc["source"], "subdomain": doc["subdomain"],
               "tokens": len(tokens), "windows": windows, "bytes": len(text.encode()), "chars": len(text),
               "words": len(re.split(r"\s+", text)), "nll": nll, "ppl": math.exp(nll / len(tokens)),
               "bpb": nll / math.log(2) / len(text.encode())}


def instance_row(model, tokenizer):
    """OLMo's in-loop perplexity: documents concatenated, cut into instances, first tokens not scored, the tail dropped."""
    ids = [i for doc in PERPLEXITY for i in tokenizer.encode(doc["text"], add_special_tokens=False).ids + [EOS]]
    np.array(ids, dtype=np.uint16).tofile(OUT / "perplexity/tokens.npy")
    instances = torch.tensor(ids[: len(ids) // LENGTH * LENGTH]).view(-1, LENGTH)
    logits = forward(model, instances)[:, :-1]
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), instances[:, 1:], reduction="none").mean(-1)
    return {"kind": "instances", "n": len(instances), "losses": losses.tolist(), "ce_loss": losses.mean().item(),
            "ppl": losses.mean().exp().item()}


# ---------------------------------------------------------------- all of it


def check_margins(rows) -> None:
    """No ranking is so close that rounding decides it."""
    ranked = {
        "olmo": {"acc": lambda r: r["logprob"], "len_norm": lambda r: r["logprob"] / r["cont_chars"],
                 "pmi_dc": lambda r: r["logprob"] / r["unconditional_logit_sum"]},
        "oe": {"acc": lambda r: r["logprob"], "len_norm": lambda r: r["logprob"] / r["cont_chars"]},
        "lm-eval": {"acc": lambda r: r["logprob"], "acc_norm": lambda r: r["logprob"] / r["cont_chars"],
                    "acc_bytes": lambda r: r["logprob"] / r["cont_bytes"],
                    "acc_mutual_info": lambda r: r["logprob"] - r.get("unconditional_logprob", 0)},
    }
    by_doc: dict = {}
    for row in rows:
        if row["kind"] == "option":
            by_doc.setdefault((row["convention"], row["task"], row["doc_id"]), []).append(row)
    smallest = (math.inf,)
    for key, options in by_doc.items():
        for name, score in ranked[key[0]].items():
            best, second = sorted(map(score, options))[-1:-3:-1]
            smallest = min(smallest, (best - second, name, key))
    print("smallest margin:", smallest)
    assert smallest[0] > 1e-4


def main() -> None:
    torch.set_num_threads(1)
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "perplexity").mkdir(parents=True)
    tokenizer = make_tokenizer()
    model = make_model()
    hf = to_transformers(model)
    (OUT / "tokenizer.json").write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    hf.save_pretrained(OUT / "model")
    (OUT / "model/generation_config.json").unlink(missing_ok=True)
    write_datasets()
    for task in CLASSES:
        write_requests(task)
    with open(OUT / "perplexity/documents.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(doc, ensure_ascii=False) + "\n" for doc in PERPLEXITY)

    downstream.load_hf_dataset = read_dataset
    defaults = downstream.ICLMultiChoiceTaskDataset.__init__.__defaults__
    downstream.ICLMultiChoiceTaskDataset.__init__.__defaults__ = tuple(LENGTH if d == 2048 else d for d in defaults)
    rows = [*olmo_rows(model, tokenizer), *oe_rows(model, tokenizer), *lm_eval_rows(hf, tokenizer),
            *document_rows(model, tokenizer), instance_row(model, tokenizer)]
    with open(OUT / "expected.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    check_margins(rows)
    cut = sum(row["kind"] == "option" and row["truncated_tokens"] > 0 for row in rows)
    print(f"{sum(row['kind'] == 'option' for row in rows)} options, {cut} of them with a cut context; "
          f"transformers {transformers.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
