// `olmo-harness eval diff`: two recorded evaluations, each instance and document.
#include <cmath>
#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_records.h"
#include "cli/interface/help.h"
#include "cli/screen/table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "report/record/asked.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct EvalDiffArguments {
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
  std::int64_t other_label = 0;
  std::int64_t other_length = 0;  ///< the same text in another number of tokens
  std::string asked_otherwise;    ///< how else a side was asked; empty: nothing tells so
  std::string conflict;           ///< why choices do not compare; empty: they do
  std::string unfinished;         ///< which side has not scored all of it; empty: neither

  [[nodiscard]] bool equal() const {
    return conflict.empty() && unfinished.empty() &&
           only_a + only_b + other_request + other_label + other_length == 0 &&
           equal_bits == continuations;
  }
};

/// The same of a perplexity suite.
struct SuiteDifference {
  std::int64_t documents = 0;  ///< that both have, of the same text
  std::int64_t only_a = 0, only_b = 0;
  std::int64_t other_text = 0;  ///< same place, other text or counts
  std::int64_t equal_bits = 0;
  double largest = 0;  ///< difference of summed log-likelihoods, nats
  std::string asked_otherwise, unfinished;

  [[nodiscard]] bool equal() const {
    return unfinished.empty() && only_a + only_b + other_text == 0 && equal_bits == documents;
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

bool same_lengths(const std::vector<OptionRow>& a, const std::vector<OptionRow>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.ctx_tokens == y.ctx_tokens && x.cont_tokens == y.cont_tokens;
  });
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
  difference.other_length += !same_lengths(a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++difference.continuations;
    if (a[i].logprob == b[i].logprob) ++difference.equal_bits;
    difference.largest = std::max(difference.largest, std::abs(a[i].logprob - b[i].logprob));
  }
  difference.other_label += a.front().label != b.front().label;
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

using Entries = std::map<std::string, store::EvaluationTaskEntry>;

/// The tasks and suites of an evaluation by name.
Entries entries_of(const RecordedEvaluation& evaluation) {
  Entries entries;
  for (auto& entry : evaluation.db.tasks(evaluation.entry.evaluation_id))
    entries.emplace(entry.record.task, entry);
  return entries;
}

/// A task or suite that both evaluations have.
struct Common {
  const RecordedEvaluation &a, &b;
  store::EvaluationTaskEntry in_a, in_b;

  [[nodiscard]] const std::string& name() const { return in_a.record.task; }
  [[nodiscard]] bool is_suite() const { return in_a.record.kind == "perplexity"; }
};

/// What the two sides chose by, where that differs: other choices follow from it alone.
std::string conflict_of(const Common& task) {
  std::string text;
  const auto say = [&](const char* what, const std::string& in_a, const std::string& in_b) {
    if (in_a.empty() || in_b.empty() || in_a == in_b) return;
    text += std::string(text.empty() ? "" : "; ") + "A chose by the " + what + " " + in_a +
            ", B by " + in_b;
  };
  say("metric", task.in_a.record.primary_metric, task.in_b.record.primary_metric);
  say("convention", task.in_a.record.convention, task.in_b.record.convention);
  return text;
}

/// What decided the tokens beside the texts, where that differs.
std::string asked_otherwise(const Common& common) {
  const auto asked = [&](const RecordedEvaluation& of) {
    return report::AskedParts(of.entry.record.settings).of(common.name());
  };
  const report::Asked a = asked(common.a), b = asked(common.b);
  std::vector<std::string> ways;
  const auto say = [&](const auto& in_a, const auto& in_b, const std::string& what) {
    if (in_a && in_b && *in_a != *in_b)
      ways.push_back(what + " " + std::to_string(*in_a) + " in A, " + std::to_string(*in_b) +
                     " in B");
  };
  say(a.max_length, b.max_length, "the longest input is");
  say(a.first_token, b.first_token, "the token before texts, and requests without a context, is");
  return joined(ways);
}

std::string unfinished(const Common& common) {
  std::vector<std::string> sides;
  for (const auto& [letter, entry] : {std::pair('A', &common.in_a), std::pair('B', &common.in_b)})
    if (entry->status != "finished")
      sides.push_back(std::string("of ") + letter + " it is recorded as " + entry->status);
  return joined(sides);
}

TaskDifference compare_task(const Common& task) {
  const auto rows_a = by_instance(task.a.db.options(task.a.entry.evaluation_id, task.name()));
  const auto rows_b = by_instance(task.b.db.options(task.b.entry.evaluation_id, task.name()));
  TaskDifference difference;
  difference.conflict = conflict_of(task);
  difference.asked_otherwise = asked_otherwise(task);
  difference.unfinished = unfinished(task);
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

SuiteDifference compare_suite(const Common& suite) {
  std::map<std::int64_t, DocumentRow> in_b;
  for (auto& row : suite.b.db.documents(suite.b.entry.evaluation_id, suite.name()))
    in_b.emplace(row.index, std::move(row));
  SuiteDifference difference;
  difference.asked_otherwise = asked_otherwise(suite);
  difference.unfinished = unfinished(suite);
  std::int64_t common = 0;
  for (const auto& row : suite.a.db.documents(suite.a.entry.evaluation_id, suite.name())) {
    const auto found = in_b.find(row.index);
    if (found == in_b.end()) {
      ++difference.only_a;
      continue;
    }
    ++common;
    const DocumentRow& other = found->second;
    if (row.text_hash != other.text_hash || row.source != other.source ||
        row.tokens != other.tokens || row.bytes != other.bytes) {
      ++difference.other_text;
      continue;
    }
    ++difference.documents;
    difference.equal_bits += row.nll == other.nll;
    difference.largest = std::max(difference.largest, std::abs(row.nll - other.nll));
  }
  difference.only_b = std::ssize(in_b) - common;
  return difference;
}

/// What both have, and what one alone has; of what --tasks names, if it names any.
struct Selection {
  std::vector<Common> common;
  std::vector<std::string> only_a, only_b;
};

Selection select(const RecordedEvaluation& a, const RecordedEvaluation& b,
                 const EvalDiffArguments& options) {
  const Entries in_a = entries_of(a), in_b = entries_of(b);
  const auto wanted = [&](const std::string& name) {
    return options.tasks.empty() || std::ranges::find(options.tasks, name) != options.tasks.end();
  };
  Selection found;
  for (const auto& [name, entry] : in_a) {
    if (!wanted(name)) continue;
    const auto other = in_b.find(name);
    if (other == in_b.end() || other->second.record.kind != entry.record.kind)
      found.only_a.push_back(name);
    else
      found.common.push_back({a, b, entry, other->second});
  }
  for (const auto& [name, entry] : in_b) {
    const auto other = in_a.find(name);
    if (wanted(name) && (other == in_a.end() || other->second.record.kind != entry.record.kind))
      found.only_b.push_back(name);
  }
  for (const auto& name : options.tasks)
    if (!in_a.contains(name) || !in_b.contains(name))
      throw Error(ErrorKind::kUsage,
                  "eval diff: " + (in_a.contains(name) ? b : a).entry.evaluation_id +
                      " has no task or suite " + name);
  if (found.common.empty())
    throw Error(ErrorKind::kUsage, "eval diff: " + a.entry.evaluation_id + " and " +
                                       b.entry.evaluation_id +
                                       " have no task and no suite in common");
  return found;
}

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

OrderedJson to_json(const TaskDifference& d) {
  return {{"instances", d.instances},
          {"only_a", d.only_a},
          {"only_b", d.only_b},
          {"other_request", d.other_request},
          {"other_label", d.other_label},
          {"other_length", d.other_length},
          {"both_right", d.right_both},
          {"only_a_right", d.right_a},
          {"only_b_right", d.right_b},
          {"both_wrong", d.right_none},
          {"continuations", d.continuations},
          {"equal_bits", d.equal_bits},
          {"largest_difference", d.largest},
          {"asked_otherwise", text_or_null(d.asked_otherwise)},
          {"choices_not_compared", text_or_null(d.conflict)},
          {"unfinished", text_or_null(d.unfinished)},
          {"flips", d.flips}};
}

OrderedJson to_json(const SuiteDifference& d) {
  return {{"documents", d.documents},
          {"only_a", d.only_a},
          {"only_b", d.only_b},
          {"other_text", d.other_text},
          {"equal_bits", d.equal_bits},
          {"largest_difference", d.largest},
          {"asked_otherwise", text_or_null(d.asked_otherwise)},
          {"unfinished", text_or_null(d.unfinished)}};
}

void print_tables(const OrderedJson& json) {
  TextTable tasks({"task", "instances", "both right", "only a right", "only b right", "both wrong",
                   "flips", "equal bits", "of", "largest difference"});
  for (const auto& [task, d] : json["tasks"].items())
    tasks.add({task, text_of(d["instances"]), text_of(d["both_right"]), text_of(d["only_a_right"]),
               text_of(d["only_b_right"]), text_of(d["both_wrong"]),
               std::to_string(d["flips"].size()), text_of(d["equal_bits"]),
               text_of(d["continuations"]), text_of(d["largest_difference"])});
  if (tasks.rows() > 1) tasks.print(std::cout);
  TextTable suites({"suite", "documents", "equal bits", "largest difference"});
  for (const auto& [suite, d] : json["suites"].items())
    suites.add({suite, text_of(d["documents"]), text_of(d["equal_bits"]),
                text_of(d["largest_difference"])});
  if (suites.rows() > 1) suites.print(std::cout);
}

/// What is to be said of two evaluations apart from their numbers: one line each.
std::vector<std::string> unlike(const OrderedJson& json) {
  std::vector<std::string> lines;
  const auto line = [&](const std::string& text) { lines.push_back(text + "."); };
  for (const auto& [key, letter] : {std::pair("only_a", 'A'), std::pair("only_b", 'B')})
    for (const auto& name : json[key]) line(text_of(name) + ": only " + letter + " has it");
  const auto say = [&](const std::string& name, const OrderedJson& d, const char* key,
                       const char* unit, const std::string& what) {
    if (d.contains(key) && d[key] != 0)
      line(name + ": " + counted(d[key].get<std::int64_t>(), unit) + " " + what);
  };
  for (const auto& [kind, unit] : {std::pair("tasks", "instance"), std::pair("suites", "document")})
    for (const auto& [name, d] : json[kind].items()) {
      say(name, d, "only_a", unit, "only in A");
      say(name, d, "only_b", unit, "only in B");
      say(name, d, "other_request", unit, "with other requests");
      say(name, d, "other_label", unit, "with other labels (those of A are taken)");
      say(name, d, "other_length", unit,
          "with other lengths in tokens for the same text: cut to another maximum, or read by "
          "another tokenizer");
      say(name, d, "other_text", unit, "with other texts, sources or counts");
      if (!d["asked_otherwise"].is_null()) line(name + ": " + text_of(d["asked_otherwise"]));
      if (!d["unfinished"].is_null()) line(name + ": " + text_of(d["unfinished"]));
      if (d.contains("choices_not_compared") && !d["choices_not_compared"].is_null())
        line(name + ": " + text_of(d["choices_not_compared"]) +
             ". Choices and flips are not compared; log-likelihoods are");
    }
  if (json["a"] == json["b"]) line("Both sides are one evaluation");
  if (json["same_weights"] == false) line("The weights are not the same");
  if (json["equal"] == true) line("Every score has the same bits");
  return lines;
}

void print(const OrderedJson& json, std::int64_t shown) {
  print_tables(json);
  const auto lines = unlike(json);
  if (!lines.empty()) std::cout << "\n";
  for (const auto& line : lines) std::cout << fitted(line);
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

/// Null where a record does not tell its weights.
OrderedJson same_weights(const RecordedEvaluation& a, const RecordedEvaluation& b) {
  const std::string &x = a.entry.record.weights_digest, &y = b.entry.record.weights_digest;
  if (x.empty() || y.empty()) return nullptr;
  return x == y;
}

int run(const EvalDiffArguments& options) {
  const RecordedEvaluation a(options.a), b(options.b);
  const Selection selected = select(a, b, options);
  OrderedJson json = {{"a", a.entry.evaluation_id},         {"b", b.entry.evaluation_id},
                      {"same_weights", same_weights(a, b)}, {"only_a", selected.only_a},
                      {"only_b", selected.only_b},          {"tasks", OrderedJson::object()},
                      {"suites", OrderedJson::object()}};
  bool equal = selected.only_a.empty() && selected.only_b.empty();
  const auto add = [&](const char* kind, const std::string& name, const auto& difference) {
    equal = equal && difference.equal();
    json[kind][name] = to_json(difference);
  };
  for (const Common& common : selected.common) {
    if (common.is_suite())
      add("suites", common.name(), compare_suite(common));
    else
      add("tasks", common.name(), compare_task(common));
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
      "Compare two recorded evaluations, each instance and document; exit code 5 if they differ");
  auto& options = command.options<EvalDiffArguments>();
  command.run(options.a, "RUN_A", kRecordedHelp).required();
  command.run(options.b, "RUN_B", "The other one").required();
  command
      .option("--tasks NAME,…", options.tasks,
              "Compare only these tasks and suites: arc_easy,boolq,…")
      .separated_by_commas();
  command.number("--show", options.shown, {0}, "How many changed answers to print");
  command.json(options.json);
  command.footer("Example: olmo-harness eval diff lumi.db mosaic.db --tasks arc_easy");
  command.action([&options] { return run(options); });
}

}  // namespace olmo::cli
