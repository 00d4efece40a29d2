"""Writes tests/data/eval/encoding.jsonl and scoring.json.

encoding: contexts and continuations as OLMo's downstream evaluator and lm-eval make token ids of them, with the small tokenizer of
make_tokenizer.py. scoring: random logits of made-up instances, what OLMo's ICLMetric and lm-eval's metrics give for them.
Needs: pip install ai2-olmo==0.6.0 lm_eval==0.4.13 tokenizers==0.23.3 torch. Run: python3 tests/goldens/make_rank_classification.py
"""

import json
import pathlib
import random

import numpy as np
import torch
from lm_eval.api.metrics import mean, mean_stderr
from lm_eval.api.model import TemplateLM
from olmo.eval.downstream import ICLMetric, ICLMultiChoiceTaskDataset
from tokenizers import Tokenizer

DATA = pathlib.Path(__file__).parents[1] / "data"
WORDS = ["bacodu", "the", "fegilo", "sitoré", "日я", "it's", "12", "word", ".", "\n", "\n\n", "  ", "Question:", "naresi"]
CONTEXT_ENDS = ["", "", "", " ", "  ", "\n", " \n ", "\u00a0", "\u3000", "\x85", "\x1f", ":", "wo", "<left>", "the"]
CONTINUATIONS = [" the", " word", "word", " it's", "'s", " 日", " .", "  ", " bacodu fegilo.", "rd", "ing", " a\u0301", "<|end|>", "<|end|> the", "\nsi"]


class OlmoPairs(ICLMultiChoiceTaskDataset):
    """`prep_examples` over given (context, continuation, prompt) triples."""

    def __init__(self, encode, triples, max_length):
        self.encode, self.dataset, self.model_ctx_len = encode, triples, max_length
        self.prompts, self.log_instances, self.samples = [None], 0, []
        self.prep_examples()

    def token_encode(self, string):
        return self.encode(string)

    def doc_to_text(self, doc):
        return doc[0]

    def doc_to_continuations(self, doc):
        return [doc[1]]

    def doc_to_domain_conditional(self, doc):
        return doc[2]

    def doc_to_label(self, doc):
        return 0


class LmEvalPairs(TemplateLM):
    """Keeps the token ids that lm-eval would score."""

    backend = "causal"

    def __init__(self, encode, prefix):
        super().__init__()
        self.encode, self.prefix, self.pairs = encode, prefix, []

    @property
    def eot_token_id(self):
        return self.prefix

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        return self.encode(string)

    def _loglikelihood_tokens(self, requests, **kwargs):
        self.pairs += [(context, continuation) for _, context, continuation in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def generate_until(self, requests, disable_tqdm=False):
        raise NotImplementedError


class Request:
    def __init__(self, *args):
        self.args = args


def encoding_cases():
    tokenizer = Tokenizer.from_file(str(DATA / "data/tokenizer_small.json"))
    prefix = tokenizer.token_to_id("<|end|>")

    def encode(string):
        return tokenizer.encode(string, add_special_tokens=False).ids

    rng = random.Random(4)
    for i in range(300):
        context = " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 9))) + rng.choice(CONTEXT_ENDS)
        continuation = rng.choice(CONTINUATIONS) + rng.choice(["", "", " naresi", "!"])
        max_length = rng.choice([4, 8, 2048])
        record = {"context": context, "continuation": continuation, "max_length": max_length, "prefix": prefix}
        cont_ids = encode(continuation)
        if encode(context) and len(cont_ids) <= max_length:
            sample = OlmoPairs(encode, [(context, continuation, "si to")], max_length).samples[0]
            last = [cont_ids[-1]]
            record["separate"] = {"tokens": sample["query"] + last, "ctx_len": sample["ctx_len"], "cont_len": sample["cont_len"],
                                  "chars": sample["cont_str_len"], "bytes": sample["cont_byte_len"],
                                  "unconditional": (sample["dc_query"] + last)[-(max_length + 1):]}
        if context == "" or context.strip() != "":
            lm = LmEvalPairs(encode, prefix)
            lm.loglikelihood([Request(context, continuation)], disable_tqdm=True)
            ctx, cont = lm.pairs[0]
            if 0 < len(cont) <= max_length:
                # as HFLM._loglikelihood_tokens cuts it, the last token put back
                record["joint"] = {"tokens": (ctx + cont)[-(max_length + 1):], "cont_len": len(cont)}
        yield record


def run_metric(metric_type, batches, unconditional):
    metric = ICLMetric(metric_type=metric_type)
    for batch, logits, prompt_logits in batches:
        metric.update(batch, logits, prompt_logits if unconditional else None)
    values = [float(entry[2]) for entry in metric.loglikelihoods]
    return float(metric.compute()), values


def scoring_case():
    torch.manual_seed(0)
    rng = random.Random(9)
    rows, all_batches, gold_batches = [], [], []
    correct = {"acc": [], "acc_norm": [], "acc_bytes": [], "acc_mutual_info": []}
    for doc_id in range(60):
        count, label = rng.randint(2, 5), 0
        label = rng.randrange(count)
        likelihoods, prompt_likelihoods = [], []
        texts = ["".join(rng.choice("abcé日") for _ in range(rng.randint(1, 30))) for _ in range(count)]
        for cont_id, text in enumerate(texts):
            tokens = torch.tensor([rng.randrange(50) for _ in range(rng.randint(1, 6))])
            logits, prompt_logits = 2 * torch.randn(1, 12, 50), 2 * torch.randn(1, 12, 50)
            n = len(tokens)
            batch = {"doc_id": [doc_id], "cont_id": [cont_id], "continuation": tokens[None], "cont_len": torch.tensor([n]),
                     "ctx_len": torch.tensor([3]), "dc_len": torch.tensor([2]), "cont_str_len": torch.tensor([len(text)]),
                     "cont_byte_len": torch.tensor([len(text.encode())]), "label_id": torch.tensor([label])}
            all_batches.append((batch, logits, prompt_logits))
            if cont_id == label:  # as OEEvalTask makes the instances of costs
                gold_batches.append(({**batch, "cont_id": [0], "label_id": torch.tensor([0])}, logits, prompt_logits))
            own = torch.log_softmax(logits.double(), -1)[0, 2:2 + n].gather(1, tokens[:, None]).sum().item()
            prompt = torch.log_softmax(prompt_logits.double(), -1)[0, 1:1 + n].gather(1, tokens[:, None]).sum().item()
            likelihoods.append(own)
            prompt_likelihoods.append(prompt)
            rows.append({"doc_id": doc_id, "cont_id": cont_id, "label": label, "tokens": n, "chars": len(text), "bytes": len(text.encode()),
                         "logprob": own, "unconditional_logprob": prompt,
                         "unconditional_logit_sum": prompt_logits.double()[0, 1:1 + n].gather(1, tokens[:, None]).sum().item()})
        lls, prompts = np.array(likelihoods), np.array(prompt_likelihoods)
        for name, scores in {"acc": lls, "acc_norm": lls / [float(len(text)) for text in texts],
                             "acc_bytes": lls / [float(len(text.encode())) for text in texts], "acc_mutual_info": lls - prompts}.items():
            correct[name].append(1.0 if np.argmax(scores) == label else 0.0)
    olmo, values = {}, {}
    for name in ["acc", "len_norm", "pmi_dc"]:
        # OLMo's ratio divides log-likelihoods by raw logits
        olmo[name], values[name] = run_metric(name, all_batches, name == "pmi_dc")
    for name in ["ce_loss", "bpb"]:
        olmo[name] = run_metric(name, gold_batches, False)[0]
        values[name] = run_metric(name, all_batches, False)[1]
    for i, row in enumerate(rows):
        row["olmo"] = {name: values[name][i] for name in values}
    lm_eval = {name: {"value": mean(flags), "stderr": mean_stderr(flags)} for name, flags in correct.items()}
    return {"rows": rows, "olmo": olmo, "lm_eval": lm_eval}


def main():
    out = DATA / "eval"
    out.mkdir(exist_ok=True)
    with open(out / "encoding.jsonl", "w", encoding="utf-8") as file:
        for record in encoding_cases():
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    (out / "scoring.json").write_text(json.dumps(scoring_case()) + "\n")


if __name__ == "__main__":
    main()
