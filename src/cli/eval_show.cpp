// `olmo-harness eval show`, `eval --rescore`, `eval --list`: looking at what is recorded and
// defined.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_output.h"
#include "cli/eval_records.h"
#include "cli/screen/table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "eval/asked.h"
#include "eval/scoring.h"
#include "eval/task_catalog.h"
#include "evaluation/recorded_evaluation.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct EvalShowArguments {
  std::string run, task, data, definitions;
  std::int64_t doc_id = 0;
  bool json = false;
};

/// The recorded task of that name. Throws Error(kUsage) that lists the names.
eval::Task find_recorded(const store::EvaluationEntry& entry, const std::string& name) {
  std::vector<std::string> names;
  for (auto& task : evaluation::recorded_tasks(entry.record.settings)) {
    if (task.name == name) return std::move(task);
    names.push_back(task.name);
  }
  throw Error(ErrorKind::kUsage, "evaluation " + entry.evaluation_id + " has no task `" + name +
                                     "`; it has " + (names.empty() ? "none" : joined(names)));
}

/// The instance as it was asked, rendered again.
eval::Example render_instance(const EvalShowArguments& options, const eval::Task& recorded,
                              std::span<const OptionRow> rows) {
  const auto task =
      eval::render_again(eval::load_catalog(if_given(options.definitions)), recorded.name,
                         recorded.convention, task_data_folder(options.data), options.doc_id + 1);
  const std::string where = recorded.name + ": instance " + std::to_string(options.doc_id);
  const auto* example = eval::find_example(task, options.doc_id);
  if (example == nullptr) throw Error(ErrorKind::kInput, where + " is not in the data");
  if (!eval::was_asked(*example, rows))
    throw Error(ErrorKind::kInput,
                where +
                    " was another text when it was evaluated: data or definition of the task "
                    "have changed since");
  return *example;
}

OrderedJson option_json(const eval::Task& task, const eval::Option& option, const OptionRow& row) {
  OrderedJson json = {{"cont_id", row.cont_id},
                      {"context", option.context},
                      {"continuation", option.continuation},
                      {"right", row.cont_id == row.label},
                      {"rank", row.rank},
                      {"margin", row.margin},
                      {"ctx_tokens", row.ctx_tokens},
                      {"cont_tokens", row.cont_tokens},
                      {"truncated_tokens", row.truncated_tokens},
                      {"logprob", row.logprob},
                      {"is_greedy", row.is_greedy}};
  for (const auto& metric : task.metrics) {
    json["scores"][metric.name] = or_null(eval::find_score(metric.score).of(row));
  }
  return json;
}

void print_instance(const OrderedJson& json) {
  std::cout << json["task"].get<std::string>() << " " << json["doc_id"] << " ("
            << json["convention"].get<std::string>() << ", ranked by "
            << json["primary_metric"].get<std::string>() << ")\n";
  std::string shown;
  for (const auto& option : json["options"]) {
    const auto context = option["context"].get<std::string>();
    if (context != shown) std::cout << "\n----- context\n" << context << "\n-----\n";
    shown = context;
  }
  TextTable table({"", "continuation", "tokens", "log-likelihood", "score", "rank"});
  for (const auto& option : json["options"]) {
    const auto& score = option["scores"][json["primary_metric"].get<std::string>()];
    table.add({std::string(option["rank"] == 1 ? "chosen" : "") +
                   (option["right"].get<bool>() ? (option["rank"] == 1 ? ", right" : "right") : ""),
               option["continuation"].get<std::string>(), text_of(option["cont_tokens"]),
               text_of(option["logprob"]), text_of(score), text_of(option["rank"])});
  }
  table.print(std::cout);
}

void show(const EvalShowArguments& options) {
  const RecordedEvaluation recorded(options.run);
  const auto& [records, db, entry] = recorded;
  const auto task = find_recorded(entry, options.task);
  const auto rows = db.instance(entry.evaluation_id, options.task, options.doc_id);
  if (rows.empty())
    throw Error(ErrorKind::kUsage, "evaluation " + entry.evaluation_id + ": " + options.task +
                                       " has no instance " + std::to_string(options.doc_id));
  const auto example = render_instance(options, task, rows);
  OrderedJson json = {{"evaluation_id", entry.evaluation_id},
                      {"checkpoint", entry.record.checkpoint},
                      {"task", task.name},
                      {"convention", task.convention},
                      {"primary_metric", task.primary_metric},
                      {"doc_id", options.doc_id},
                      {"native_id", example.native_id},
                      {"label", example.label},
                      {"options", OrderedJson::array()}};
  for (const auto& row : rows)
    json["options"].push_back(
        option_json(task, example.options[static_cast<std::size_t>(row.cont_id)], row));
  if (options.json) {
    std::cout << json_text(json, 2) << "\n";
  } else {
    print_instance(json);
  }
}

}  // namespace

void rescore(const std::string& run, const std::filesystem::path& instances, bool json) {
  const RecordedEvaluation recorded(run);
  const auto& [records, db, entry] = recorded;
  const auto tasks = evaluation::recorded_tasks(entry.record.settings);
  const auto outcome = evaluation::rescore(db, entry.evaluation_id);
  if (!instances.empty()) {
    OutputFile file(instances);
    write_instances(file, db, entry.evaluation_id, tasks);
  }
  if (!json) {
    print_scores(std::cout, outcome, tasks);
    return;
  }
  OrderedJson object = {{"checkpoint", entry.record.checkpoint},
                        {"evaluation_id", entry.evaluation_id},
                        {"database", records.path().string()},
                        {"weights_digest", entry.record.weights_digest}};
  object.update(scores_json(outcome, tasks));
  std::cout << json_text(object, 2) << "\n";
}

void list_definitions(const std::string& definitions, bool json) {
  const auto catalog = eval::load_catalog(if_given(definitions));
  if (json) {
    OrderedJson object = {{"tasks", OrderedJson::array()}, {"suites", OrderedJson::array()}};
    for (const auto& task : catalog.tasks())
      object["tasks"].push_back({{"name", task.name},
                                 {"description", task.description},
                                 {"category", task.category},
                                 {"aliases", task.aliases},
                                 {"conventions", task.conventions},
                                 {"variants", task.variants}});
    for (const auto& suite : catalog.suites())
      object["suites"].push_back({{"name", suite.name},
                                  {"kind", suite.kind},
                                  {"description", suite.description},
                                  {"tasks", suite.tasks}});
    std::cout << json_text(object, 2) << "\n";
    return;
  }
  TextTable suites({"suite", "kind", "description"});
  for (const auto& suite : catalog.suites())
    suites.add({suite.name, suite.kind, suite.description});
  suites.print(std::cout);
  std::cout << "\n";
  TextTable tasks({"task", "conventions", "variants"});
  for (const auto& task : catalog.tasks())
    tasks.add({task.name, joined(task.conventions, " "), joined(task.variants, " ")});
  tasks.print(std::cout);
}

void add_eval_show(const Command& eval) {
  const Command command = eval.add(
      "show", "Show one instance of a recorded evaluation: prompt, continuations, scores, choice");
  auto& options = command.options<EvalShowArguments>();
  command.run(options.run, "RUN", kRecordedHelp).required();
  command.option("TASK", options.task, "Task of that evaluation: arc_easy, …").required();
  command.number("DOC_ID", options.doc_id, {0}, "Number of the instance, from 0").required();
  command.option("--data DIR", options.data, "The folder that `data fetch` filled");
  command.option("--definitions DIR", options.definitions,
                 "Folder with tasks/ beside the built-in ones");
  command.json(options.json);
  command.footer("Example: olmo-harness eval show evaluations.db arc_easy 17");
  command.action([&options] { show(options); });
}

}  // namespace olmo::cli
