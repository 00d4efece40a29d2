// `olmo-harness eval`: any checkpoint on tasks and perplexity suites.
#include "cli/commands.h"
#include "cli/compute/compute.h"
#include "cli/eval_records.h"
#include "cli/given_path.h"
#include "cli/rank_options.h"
#include "core/error.h"
#include "core/process/process.h"

namespace olmo::cli {
namespace {

void add_what(const Command& eval, EvalOptions& options) {
  eval.checkpoint(
      options.checkpoint, "CHECKPOINT",
      "A checkpoint or run folder of olmo-harness, or a folder with config.json (Hugging Face, "
      "OLMo-core) or config.yaml (OLMo) and the weights");
  eval.option("--suite NAME,…", options.suites,
              "Suites by name, or .json files (default: olmo, the eight tasks)")
      .separated_by_commas()
      .takes(Takes::kSuite);
  eval.option("--tasks NAME,…", options.tasks, "Tasks by name: arc_easy,boolq,arc_easy_rc_5shot,…")
      .separated_by_commas()
      .takes(Takes::kTask);
  eval.option("--convention", options.convention,
              "How prompts and scores are made: as OLMo's evaluator in training (olmo), AI2's "
              "oe-eval (oe) or lm-eval")
      .one_of({"olmo", "oe", "lm-eval"});
  eval.option("--perplexity NAME=PATH", options.perplexity,
              "Score texts, under this name: a text or .jsonl(.gz|.zst) file, a folder in Paloma's "
              "layout, or token files");
  eval.option("--document-convention", options.document_convention,
              "How texts are scored: each document by itself (catwalk) or joined and cut into "
              "instances (olmo). Default: catwalk, for token files olmo")
      .one_of({"catwalk", "olmo"});
  eval.option("--split", options.split, "Which split of a folder in Paloma's layout: val or test");
  eval.option("--missing", options.missing,
              "What to do if data of a suite is not on disk: skip it or refuse to start")
      .one_of({"skip", "refuse"});
  eval.number("--limit", options.limit, kPositive,
              "Score only the first N instances of each task and documents of each source");
  eval.number(
      "--max-length", options.max_length, {2, kSizes.high},
      "Longest input in tokens (default: the model's max_sequence_length; 2048 for tasks in "
      "the conventions olmo and oe, as OLMo cuts them)");
  eval.flag("--no-unconditional", options.no_unconditional,
            "Do not score answers without their questions (needed for pmi_dc): a third less work");
}

void add_how(const Command& eval, EvalOptions& options) {
  eval.option(
          "--tokenizer FILE|NAME", options.tokenizer,
          "A tokenizer.json, or the name of a fetched one (dolma-v1_5), if the checkpoint names "
          "none")
      .takes(Takes::kTokenizer);
  eval.option("--data DIR", options.data,
              "The folder that `data fetch` filled (default: data/ in the cache folder)");
  const Option definitions =
      eval.option("--definitions DIR", options.definitions,
                  "Folder with further tasks/ and suites/ (default: evals/ in the current folder)");
  eval.option("--db FILE", options.database,
              "Database to write to (default: the checkpoint's run's, else evaluations.db)");
  const Option run = eval.run(options.run, "--run RUN",
                              std::string("Make the evaluation part of this run (") + kRunForms +
                                  "), e.g. an imported one");
  eval.number("--step", options.step, {0, std::int64_t{1} << 53},
              "Step of that run, if neither the checkpoint nor its name tells it")
      .needs(run);
  const Option instances = eval.option("--instances FILE", options.instances,
                                       "Also write one JSON object per continuation to this file");
  eval.option("--numerics", options.policy.numerics,
              "portable: the same bits on every machine; fast: LibTorch's matrix products and "
              "attention")
      .one_of({"portable", "fast"});
  eval.option("--precision", options.precision,
              "fp32, whatever the weights are stored in, or amp_bf16: weights and hidden states in "
              "bf16, as OLMo evaluates while it trains with FSDP; scores are fp32 in both")
      .one_of({to_string(Precision::kFp32), to_string(Precision::kAmpBf16)});
  eval.isa_device_threads(options.policy);
  eval.number("--batch-tokens", options.batch_tokens, kSizes,
              "Tokens in one forward pass; changes memory and speed, no score");
  eval.flag("--no-prefix-sharing", options.no_prefix_sharing,
            "Do not share computed contexts between requests: slower, the same scores");
  add_rank_options(eval, options.ranks);
  const Option json = eval.json(options.json);
  const Option list = eval.flag("--list", options.list, "List tasks and suites");
  const Option rescore = eval.run(
      options.rescore, "--rescore RUN",
      "Compute the scores of a recorded evaluation again, from its rows and without a model");
  eval.alone(list, {json, definitions});
  eval.alone(rescore, {json, instances});
}

}  // namespace

void add_eval(const Command& program, const char* group) {
  const Command eval =
      program.add("eval", "Evaluate a checkpoint on tasks and perplexity suites", group);
  auto& options = eval.options<EvalOptions>();
  add_what(eval, options);
  add_how(eval, options);
  add_eval_list(eval);
  add_eval_show(eval);
  add_eval_diff(eval);
  eval.footer(
      "Rows are recorded as they finish: an interrupted evaluation goes on where it was when the "
      "same command is given again.\n"
      "Examples:\n"
      "  olmo-harness eval runs/a --limit 100\n"
      "  olmo-harness eval OLMo-1B-hf --suite olmo,paloma --db olmo1b.db --json\n"
      "  olmo-harness eval OLMo-1B-hf --convention oe --tasks arc_easy,hellaswag_rc_5shot\n"
      "  olmo-harness eval runs/a --perplexity mine=notes.txt --perplexity c4=c4_val.jsonl.gz\n"
      "  olmo-harness eval step1000-hf --run other.db --step 1000     # joins this run\n"
      "  olmo-harness eval --rescore evaluations.db --json");
  eval.action([&options] {
    options.command_line = command_line();
    if (options.checkpoint.empty() && !options.list && options.rescore.empty())
      throw Error(ErrorKind::kUsage, "eval: give a CHECKPOINT, or --list, or --rescore RUN");
    if (!options.list && options.rescore.empty()) return compute::evaluate(options);
    if (options.list) {
      list_definitions(options.definitions, options.json);
    } else {
      rescore(options.rescore, options.instances, options.json);
    }
    return 0;
  });
}

}  // namespace olmo::cli
