// `olmo-harness eval diff`: two recorded evaluations, instance by instance.
#include <cmath>
#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_records.h"
#include "cli/table.h"
#include "core/error.h"
#include "core/json.h"
#include "evaluation/evaluation.h"
#include "store/evaluation_db.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Options {
  std::string a, b;
  std::vector<std::string> tasks;
  std::int64_t shown = 10;
  bool json = false;
};

/// What two evaluations of a task have in common and where they part.
struct TaskDifference {
  std::int64_t instances = 0;  ///< that both have, of the same requests
  std::int64_t only_a = 0, only_b = 0;
  std::int64_t other_request = 0;  ///< same number, other text
  std::int64_t right_both = 0, right_a = 0, right_b = 0, right_none = 0;
  std::int64_t equal_bits = 0;  ///< continuations with the same log-likelihood
  std::int64_t continuations = 0;
  double largest = 0;  ///< difference of log-likelihoods, nats
  OrderedJson flips = OrderedJson::array();
  std::string conflict;  ///< why choices do not compare; empty: they do

  [[nodiscard]] bool equal() const {
    return conflict.empty() && only_a + only_b + other_request == 0 && equal_bits == continuations;
  }
};

std::map<std::int64_t, std::vector<OptionRow>> by_instance(std::vector<OptionRow> rows) {
  std::map<std::int64_t, std::vector<OptionRow>> instances;
  for (auto& row : rows) instances[row.doc_id].push_back(std::move(row));
  return instances;
}

std::int64_t chosen(const std::vector<OptionRow>& rows) {
  for (const auto& row : rows)
    if (row.rank == 1) return row.cont_id;
  return -1;
}

bool same_requests(const std::vector<OptionRow>& a, const std::vector<OptionRow>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.cont_id == y.cont_id && x.request_hash == y.request_hash;
         });
}

void compare_instance(const std::vector<OptionRow>& a, const std::vector<OptionRow>& b,
                      TaskDifference& difference) {
  if (!same_requests(a, b)) {
    ++difference.other_request;
    return;
  }
  ++difference.instances;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++difference.continuations;
    if (a[i].logprob == b[i].logprob) ++difference.equal_bits;
    difference.largest = std::max(difference.largest, std::abs(a[i].logprob - b[i].logprob));
  }
  if (!difference.conflict.empty()) return;
  const auto choice_a = chosen(a), choice_b = chosen(b), label = a.front().label;
  const bool right_a = choice_a == label, right_b = choice_b == label;
  ++(right_a ? (right_b ? difference.right_both : difference.right_a)
             : (right_b ? difference.right_b : difference.right_none));
  if (choice_a == choice_b) return;
  const auto margin = [](const std::vector<OptionRow>& rows, std::int64_t choice) {
    for (const auto& row : rows)
      if (row.cont_id == choice) return row.margin;
    return 0.0;
  };
  difference.flips.push_back({{"doc_id", a.front().doc_id},
                              {"native_id", a.front().native_id},
                              {"label", label},
                              {"chosen_a", choice_a},
                              {"chosen_b", choice_b},
                              {"margin_a", margin(a, choice_a)},
                              {"margin_b", margin(b, choice_b)}});
}

std::optional<store::EvaluationTaskRecord> record_of(const RecordedEvaluation& evaluation,
                                                     const std::string& task) {
  for (const auto& entry : evaluation.db.tasks(evaluation.entry.evaluation_id))
    if (entry.record.task == task) return entry.record;
  return std::nullopt;
}

/// What the two sides chose by, where that differs: other choices follow from it alone.
std::string conflict_of(const RecordedEvaluation& a, const RecordedEvaluation& b,
                        const std::string& task) {
  const auto x = record_of(a, task), y = record_of(b, task);
  if (!x || !y) return "";
  std::string text;
  const auto say = [&](const char* what, const std::string& in_a, const std::string& in_b) {
    if (in_a.empty() || in_b.empty() || in_a == in_b) return;
    text += std::string(text.empty() ? "" : "; ") + "A chose by the " + what + " " + in_a +
            ", B by " + in_b;
  };
  say("metric", x->primary_metric, y->primary_metric);
  say("convention", x->convention, y->convention);
  return text;
}

TaskDifference compare(const RecordedEvaluation& a, const RecordedEvaluation& b,
                       const std::string& task) {
  const auto rows_a = by_instance(a.db.options(a.entry.evaluation_id, task));
  const auto rows_b = by_instance(b.db.options(b.entry.evaluation_id, task));
  TaskDifference difference;
  difference.conflict = conflict_of(a, b, task);
  for (const auto& [doc_id, rows] : rows_a) {
    const auto other = rows_b.find(doc_id);
    if (other == rows_b.end()) {
      ++difference.only_a;
    } else {
      compare_instance(rows, other->second, difference);
    }
  }
  for (const auto& [doc_id, rows] : rows_b)
    if (!rows_a.contains(doc_id)) ++difference.only_b;
  return difference;
}

std::vector<std::string> common_tasks(const RecordedEvaluation& a, const RecordedEvaluation& b,
                                      const Options& options) {
  std::vector<std::string> tasks;
  const auto of_b = evaluation::recorded_tasks(b.entry.record.settings);
  for (const auto& task : evaluation::recorded_tasks(a.entry.record.settings)) {
    const bool wanted =
        options.tasks.empty() || std::ranges::find(options.tasks, task.name) != options.tasks.end();
    if (wanted && std::any_of(of_b.begin(), of_b.end(),
                              [&](const auto& other) { return other.name == task.name; }))
      tasks.push_back(task.name);
  }
  if (tasks.empty())
    throw Error(ErrorKind::kUsage, "eval diff: " + a.entry.evaluation_id + " and " +
                                       b.entry.evaluation_id + " have no such task in common");
  return tasks;
}

OrderedJson to_json(const TaskDifference& d) {
  return {
      {"instances", d.instances},
      {"only_a", d.only_a},
      {"only_b", d.only_b},
      {"other_request", d.other_request},
      {"both_right", d.right_both},
      {"only_a_right", d.right_a},
      {"only_b_right", d.right_b},
      {"both_wrong", d.right_none},
      {"continuations", d.continuations},
      {"equal_bits", d.equal_bits},
      {"largest_difference", d.largest},
      {"choices_not_compared", d.conflict.empty() ? OrderedJson(nullptr) : OrderedJson(d.conflict)},
      {"flips", d.flips}};
}

void print(const OrderedJson& json, std::int64_t shown) {
  TextTable table({"task", "instances", "both right", "only a", "only b", "both wrong", "flips",
                   "equal bits", "of", "largest difference"});
  for (const auto& [task, d] : json["tasks"].items())
    table.add({task, text_of(d["instances"]), text_of(d["both_right"]), text_of(d["only_a_right"]),
               text_of(d["only_b_right"]), text_of(d["both_wrong"]),
               std::to_string(d["flips"].size()), text_of(d["equal_bits"]),
               text_of(d["continuations"]), text_of(d["largest_difference"])});
  table.print(std::cout);
  for (const auto& [task, d] : json["tasks"].items())
    if (!d["choices_not_compared"].is_null())
      std::cout << "\n"
                << task << ": " << text_of(d["choices_not_compared"])
                << ". Choices and flips are not compared; log-likelihoods are.\n";
  TextTable flips({"task", "instance", "id", "label", "a chose", "by", "b chose", "by"});
  std::int64_t count = 0;
  for (const auto& [task, d] : json["tasks"].items()) {
    for (const auto& flip : d["flips"]) {
      if (count++ >= shown) continue;
      flips.add({task, text_of(flip["doc_id"]), text_of(flip["native_id"]), text_of(flip["label"]),
                 text_of(flip["chosen_a"]), text_of(flip["margin_a"]), text_of(flip["chosen_b"]),
                 text_of(flip["margin_b"])});
    }
  }
  if (count == 0) return;
  std::cout << "\nFlips" << (count > shown ? " (the first " + std::to_string(shown) + ")" : "")
            << ":\n";
  flips.print(std::cout);
}

int run(const Options& options) {
  const RecordedEvaluation a(options.a), b(options.b);
  OrderedJson json = {
      {"a", a.entry.evaluation_id},
      {"b", b.entry.evaluation_id},
      {"same_weights", a.entry.record.weights_digest == b.entry.record.weights_digest},
      {"tasks", OrderedJson::object()}};
  bool equal = true;
  for (const auto& task : common_tasks(a, b, options)) {
    const auto difference = compare(a, b, task);
    equal = equal && difference.equal();
    json["tasks"][task] = to_json(difference);
  }
  json["equal"] = equal;
  if (options.json) {
    std::cout << json_text(json, 2) << "\n";
  } else {
    print(json, options.shown);
  }
  return equal ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace

void add_eval_diff(const Command& eval) {
  const Command command = eval.add(
      "diff",
      "Compare two recorded evaluations instance by instance; exit code 5 if a number differs");
  auto& options = command.options<Options>();
  command.run(options.a, "RUN_A", kRecordedHelp).required();
  command.run(options.b, "RUN_B", "The other one").required();
  command.option("--tasks NAME,…", options.tasks, "Compare only these tasks: arc_easy,boolq,…")
      .separated_by_commas();
  command.number("--show", options.shown, {0}, "How many changed answers to print");
  command.json(options.json);
  command.footer("Example: olmo-harness eval diff lumi.db mosaic.db --tasks arc_easy");
  command.action([&options] { return run(options); });
}

}  // namespace olmo::cli
