"""Makes tests/data/eval/: invented data sets in the form of the released ones, and the requests that OLMo's own
classes and lm-eval make of them.

Needs: pip install ai2-olmo==0.6.0 lm_eval==0.4.13 datasets==5.2.0 pyarrow==26.0.1 torch==2.11.0
Run:   python3 tests/goldens/make_tasks.py

The texts are ours; they hold what trips a renderer: white space at the ends, empty fields, brackets, several marks,
letters whose case is not simple, digits as labels.
"""

import gzip
import json
import os
import pathlib

os.environ["HF_DATASETS_OFFLINE"] = "1"

import datasets
import lm_eval.tasks
import olmo.eval.downstream as downstream
import pyarrow
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

datasets.disable_caching()
OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "eval"

QUESTIONS = [
    {"id": "one", "question": " Which of these is wet? ", "choices": {"text": ["Stone", "Water", "Sand"], "label": ["A", "B", "C"]},
     "answerKey": "B"},
    {"id": "two", "question": "Größer als 3?", "choices": {"text": ["2 ", "1", "0", "4", " 3"], "label": ["1", "2", "3", "4", "5"]},
     "answerKey": "4"},
]
LETTERED = [{**QUESTIONS[0], "question_concept": "wet", "choices": {"label": list("ABCDE"), "text": ["a", "b ", " c", "d\n", ""]}}]
SUBJECTS = ["abstract_algebra", "anatomy"]


def mmlu(count, word):
    return [{"question": f" {word} {i}?\n", "subject": None, "choices": [f"{word}{i}{c}" for c in "wxyz"], "answer": i % 4}
            for i in range(count)]


TABLES = {
    "ai2_arc/ARC-Easy/validation": QUESTIONS,
    "ai2_arc/ARC-Challenge/validation": QUESTIONS,
    "allenai/basic_arithmetic/none/validation": [{**QUESTIONS[1], "type_tag": "easy"}],
    "boolq/none/validation": [{"question": "is rain wet", "answer": True, "passage": "Rain. \n"},
                              {"question": "is it?", "answer": False, "passage": ""}],
    "hellaswag/none/validation": [
        {"ind": 7, "activity_label": " Baking", "ctx_a": "She bakes. [step] Then  she", "ctx_b": "éTALE [title] the DOUGH. ΟΔΟΣ",
         "ctx": "", "endings": ["[header] rests  it.", "burns [substeps] it.. [title] Next", " eats [a\nb] it. [title] Then", "ﬁne"],
         "source_id": "x", "split": "val", "split_type": "indomain", "label": "2"},
        {"ind": 8, "activity_label": "Walking", "ctx_a": "A man walks slowly", "ctx_b": "", "ctx": "", "endings": ["on.", "[x]", " off [y]", ""],
         "source_id": "y", "split": "val", "split_type": "zeroshot", "label": "0"}],
    "openbookqa/main/validation": [{"id": "7-9", "question_stem": "Ice  melts into ", "choices": {"text": list("wxyz"), "label": list("ABCD")},
                                    "answerKey": " C"}],
    "piqa/plain_text/validation": [{"goal": "Open a jar", "sol1": "Turn {the} lid.", "sol2": "Turn the jar's base.", "label": 1}],
    "sciq/none/validation": [
        {"question": "What melts?", "distractor3": "air", "distractor1": "fire", "distractor2": " b", "correct_answer": "ice", "support": " Ice melts.\u2028 "},
        {"question": "What burns? ", "distractor3": "c", "distractor1": "a", "distractor2": "b", "correct_answer": "wood", "support": ""}],
    "winogrande/winogrande_xl/validation": [
        {"sentence": "Ann beat Eve because _ was as fast as _ ever was. ", "option1": "Ann", "option2": "Eve", "answer": "1"},
        {"sentence": "_ won.", "option1": "Zoë", "option2": "she", "answer": "2"}],
    "tau/commonsense_qa/none/validation": LETTERED,
    "social_i_qa/none/validation": [{"context": "Jo left.", "question": "Why?", "answerA": "a", "answerB": "b", "answerC": "c", "label": "3"}],
    "super_glue/copa/validation": [
        {"premise": "The cup fell. ", "choice1": "It broke.", "choice2": "ÄPFEL fell.", "question": "effect", "idx": 0, "label": 0},
        {"premise": "It rained", "choice1": "A", "choice2": "Clouds came.", "question": "cause", "idx": 1, "label": 1}],
    "glue/rte/validation": [{"sentence1": "It rains.", "sentence2": "It is wet.", "label": 1, "idx": 0}],
    "super_glue/cb/validation": [{"premise": "B: yes", "hypothesis": "it holds", "idx": 0, "label": 2}],
    "glue/mrpc/validation": [{"sentence1": "It did n't ( \" quite \" ) work , he 's sure .", "sentence2": "So  . it ' s", "label": 1, "idx": 0},
                             {"sentence1": "a", "sentence2": "b", "label": 0, "idx": 1}],
    "glue/sst2/validation": [{"sentence": "a film 's heart ; is n't ( it ) \" good \" . ", "label": 1, "idx": 0}],
    "nq_open/none/validation": [{"question": "who sang", "answer": ["Bob", "Rob"]}],
    "trivia_qa/rc.wikipedia.nocontext/validation": [
        {"question": "Who?", "question_id": "tc_1", "question_source": "own",
         "entity_pages": {"title": ["a"], "doc_source": ["b"], "filename": ["c"], "wiki_context": ["d"]},
         "answer": {"aliases": ["x"], "normalized_value": "y", "type": "z", "value": "Sunset"}}],
}
for number, subject in enumerate(SUBJECTS):
    for split, count in (("dev", 5), ("validation", 2), ("test", 1)):
        rows = mmlu(count, f"{split[:3]}{number}")
        TABLES[f"hails/mmlu_no_train/{subject}/{split}"] = [{**row, "subject": subject} for row in rows]

LABELS = ["piqa", "hellaswag", "winogrande", "openbook_qa", "boolq", "sciq", "arc_easy", "arc_easy_ppl", "arc_challenge",
          "basic_arithmetic", "copa", "rte", "commitment_bank", "mrpc", "sst2", "commonsense_qa", "social_iqa",
          "trivia_qa_wiki_ppl", "natural_qs_open_ppl"]
MMLU = {"": {}, "_bpb": {"metric_type": "bpb"}, "_test": {"split": "test"}, "_var": {"prompt_variations": 1},
        "_mc_5shot": {"prompt_variations": 2, "mc_labels": True},
        "_mc_5shot_test": {"split": "test", "prompt_variations": 2, "mc_labels": True},
        "_val_rc_5shot": {"prompt_variations": 2},
        "_test_rc_var_bpb": {"split": "test", "prompt_variations": 1, "metric_type": "bpb"}}
LM_EVAL = {"arc_easy": "arc/arc_easy", "arc_challenge": "arc/arc_challenge", "boolq": "super_glue/boolq/default", "copa": "super_glue/copa/default",
           "hellaswag": "hellaswag/hellaswag", "openbook_qa": "openbookqa/openbookqa", "piqa": "piqa/piqa", "sciq": "sciq/sciq",
           "winogrande": "winogrande/default", "rte": "glue/rte/default", "commitment_bank": "super_glue/cb/default",
           "mrpc": "glue/mrpc/default", "sst2": "glue/sst2/default", "social_iqa": "siqa/siqa", "commonsense_qa": "commonsense_qa/default",
           "mmlu_anatomy": "mmlu/default/mmlu_anatomy", "mmlu_anatomy:5shot": "mmlu/default/mmlu_anatomy"}
FOLDER_OF = {"arc_easy": "ai2_arc/ARC-Easy", "arc_challenge": "ai2_arc/ARC-Challenge", "boolq": "boolq/none", "copa": "super_glue/copa",
             "hellaswag": "hellaswag/none", "openbook_qa": "openbookqa/main", "piqa": "piqa/plain_text", "sciq": "sciq/none",
             "winogrande": "winogrande/winogrande_xl", "rte": "glue/rte", "commitment_bank": "super_glue/cb", "mrpc": "glue/mrpc",
             "sst2": "glue/sst2", "social_iqa": "social_i_qa/none", "commonsense_qa": "tau/commonsense_qa/none",
             "mmlu_anatomy": "hails/mmlu_no_train/anatomy"}


class Letters:
    """A tokenizer whose tokens are the characters, so that the samples of OLMo's classes hold texts."""

    def encode(self, text, add_special_tokens=False):
        return text


def load(name):
    return datasets.Dataset.from_file(str(OUT / "hf_datasets" / name / "data-00000-of-00001.arrow"))


def load_hf_dataset(path, name, split):
    return load(f"{path}/{name or 'none'}/{split}")


def write_tables():
    for name, rows in TABLES.items():
        folder = OUT / "hf_datasets" / name
        folder.mkdir(parents=True, exist_ok=True)
        table = pyarrow.Table.from_pylist(rows)
        with pyarrow.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as stream:
            stream.write_table(table)


def write_requests():
    folder = OUT / "oe_eval_tasks" / "openbookqa" / "mc_5shot"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for offset, context in ((0, "Question: {}\nAnswer:"), (1000000, "Answer:")):
        for doc, answers in enumerate((["a", "b"], ["c", "d", "é"])):
            for idx, answer in enumerate(answers):
                request = {"context": context.format(doc), "continuation": " " + answer}
                lines.append({"request_type": "loglikelihood", "doc": {"query": "x"}, "request": request, "idx": idx,
                              "doc_id": doc + offset, "native_id": doc if doc else None, "label": 1})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "requests.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def from_olmo(name, task):
    """One line an instance: its options' context, continuation and domain prompt."""
    instances = {}
    for sample in task.samples:
        instance = instances.setdefault(sample["doc_id"], {"task": name, "convention": "olmo", "label": sample["label_id"], "options": []})
        assert sample["cont_id"] == len(instance["options"])
        domain = sample["dc_query"][:sample["dc_len"]]
        instance["options"].append([sample["ctx"], sample["continuation"], domain])
    return list(instances.values())


def olmo_instances():
    downstream.load_hf_dataset = load_hf_dataset
    for label in LABELS:
        yield from from_olmo(label, downstream.label_to_task_map[label](tokenizer=Letters()))
    for suffix, arguments in MMLU.items():
        for subject in SUBJECTS:
            task = downstream.MMLU(tokenizer=Letters(), dataset_name=subject, **arguments)
            yield from from_olmo(f"mmlu_{subject}{suffix}", task)


def lm_eval_instances():
    for name, yaml in LM_EVAL.items():
        folder = FOLDER_OF[name.split(":")[0]]
        split = "test" if "mmlu" in name else "validation"
        rows = load(f"{folder}/{split}")
        if name == "boolq":
            rows = rows.map(lambda row: {"label": int(row["answer"])})

        class Task(ConfigurableTask):
            def download(self, *args, **kwargs):
                splits = {"train": rows, "validation": rows, "test": rows}
                if "mmlu" in name:
                    splits["dev"] = load(f"{folder}/dev")
                self.dataset = datasets.DatasetDict(splits)

        config = load_yaml(pathlib.Path(lm_eval.tasks.__file__).parent / f"{yaml}.yaml")
        unconditional = [] if name == "winogrande" else [{"metric": "acc_mutual_info", "aggregation": "mean", "higher_is_better": True}]
        config["metric_list"] = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}] + unconditional
        task = Task(config=config)
        task.set_config(key="num_fewshot", value=5 if name.endswith(":5shot") else 0)
        task.build_all_requests()
        requests = {}
        for instance in task.instances:
            requests.setdefault(instance.doc_id, []).append(instance)
        for doc_id in sorted(requests):
            doc = task.eval_docs[doc_id]
            label = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
            if isinstance(label, str):
                label = task.doc_to_choice(doc).index(label)
            asked = [request.args for request in sorted(requests[doc_id], key=lambda request: request.idx)]
            options = [[context, continuation, None] for context, continuation in asked]
            if unconditional:
                half = len(asked) // 2
                assert [one[1] for one in asked[half:]] == [one[1] for one in asked[:half]]
                options = [[context, continuation, alone[0]] for (context, continuation), alone in zip(asked[:half], asked[half:])]
            yield {"task": name, "convention": "lm-eval", "label": label, "options": options}


def main():
    write_tables()
    write_requests()
    instances = [*olmo_instances(), *lm_eval_instances()]
    text = "".join(json.dumps(instance, ensure_ascii=False) + "\n" for instance in instances)
    (OUT / "requests.golden.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
