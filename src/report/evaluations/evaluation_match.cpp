#include "report/evaluations/evaluation_match.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/text/text.h"
#include "report/walk.h"

namespace olmo::report {
namespace {

void say_alone(const std::string& name, std::int64_t count, const char* unit, char side,
               Findings& findings) {
  if (count > 0)
    findings.invalid.push_back(name + ": " + counted(count, unit) + (count == 1 ? " is" : " are") +
                               " only in " + side);
}

void say_missing(const std::string& name, char side, Findings& findings) {
  findings.invalid.push_back(name + ": only " + side + " has it");
}

void say_conflict(const std::string& name, const char* what, const std::string& a,
                  const std::string& b, Findings& findings) {
  if (conflicts(a, b))
    findings.mismatched.push_back(name + ": the " + what + " differs, " + a.substr(0, 16) +
                                  " and " + b.substr(0, 16));
}

/// What decides the requests, of a task or of a suite.
template <typename Evaluated>
void say_conflicts(const std::string& name, const Evaluated& a, const Evaluated& b,
                   Findings& findings) {
  say_conflict(name, "definition", a.definition_digest, b.definition_digest, findings);
  say_conflict(name, "data set", a.data_digest, b.data_digest, findings);
  say_conflict(name, "convention", a.convention, b.convention, findings);
}

/// `before` what: texts, or the requests that have no context.
void say_first_tokens(const std::string& name, const Asked& a, const Asked& b, const char* before,
                      Findings& findings) {
  if (a.first_token && b.first_token && *a.first_token != *b.first_token)
    findings.mismatched.push_back(name + ": another token stands before " + before + ", " +
                                  std::to_string(*a.first_token) + " and " +
                                  std::to_string(*b.first_token));
}

/// `count` units differ in `what`.
void say_different(const std::string& name, std::int64_t count, const char* unit, const char* what,
                   std::vector<std::string>& sentences) {
  if (count > 0)
    sentences.push_back(name + ": " + counted(count, unit) + (count == 1 ? " has" : " have") +
                        " other " + what);
}

bool differ(std::uint64_t a, std::uint64_t b) { return a != 0 && b != 0 && a != b; }

bool unequal_counts(const EvaluatedDocument& a, const EvaluatedDocument& b, bool same_tokenizer) {
  return a.bytes != b.bytes || (same_tokenizer && a.tokens != b.tokens);
}

SuitePair match_suite(const EvaluatedSuite& a, const EvaluatedSuite& b, bool same_tokenizer,
                      Findings& findings) {
  say_conflicts(a.suite, a, b, findings);
  say_first_tokens(a.suite, a.asked, b.asked, "texts", findings);
  SuitePair pair{&a, &b, {}};
  std::int64_t only_a = 0, only_b = 0, texts = 0, counts = 0;
  walk(
      a.documents, b.documents, [](const EvaluatedDocument& document) { return document.index; },
      [&](const EvaluatedDocument& in_a, const EvaluatedDocument& in_b) {
        if (in_a.source != in_b.source || differ(in_a.text, in_b.text))
          ++texts;
        else if (unequal_counts(in_a, in_b, same_tokenizer))
          ++counts;
        else
          pair.documents.push_back({&in_a, &in_b});
      },
      [&](const EvaluatedDocument&, char side) { ++(side == 'A' ? only_a : only_b); });
  say_alone(a.suite, only_a, "document", 'A', findings);
  say_alone(a.suite, only_b, "document", 'B', findings);
  say_different(a.suite, texts, "document", "texts or sources", findings.mismatched);
  say_different(a.suite, counts, "document", "counts of tokens or bytes", findings.invalid);
  if (pair.documents.empty() && texts == 0)
    findings.invalid.push_back(a.suite + ": there is no document to compare");
  return pair;
}

/// The maximum lengths that two evaluations cut a suite's texts to; nothing where they do not
/// differ, or a record does not tell.
std::optional<std::pair<std::int64_t, std::int64_t>> unlike_lengths(const EvaluatedSuite& a,
                                                                    const EvaluatedSuite& b) {
  const auto x = a.asked.max_length, y = b.asked.max_length;
  if (!x || !y || *x == *y) return std::nullopt;
  return std::pair(*x, *y);
}

/// Whether such lengths changed what was scored: a document is longer than one of them, or they
/// made other documents of the same tokens.
bool were_cut(const EvaluatedSuite& a, const EvaluatedSuite& b,
              const std::pair<std::int64_t, std::int64_t>& lengths) {
  const auto longer = [&](const EvaluatedDocument& document) {
    return document.tokens > std::min(lengths.first, lengths.second);
  };
  return a.documents.size() != b.documents.size() || std::ranges::any_of(a.documents, longer) ||
         std::ranges::any_of(b.documents, longer);
}

bool tells_requests(const EvaluatedTask& a, const EvaluatedTask& b) {
  if (!a.definition_digest.empty() && !b.definition_digest.empty()) return true;
  const auto hashed = [](const EvaluatedTask& task) {
    return std::ranges::all_of(
        task.instances, [](const EvaluatedInstance& instance) { return instance.requests != 0; });
  };
  return hashed(a) && hashed(b);
}

}  // namespace

bool requests_known(const EvaluationData& a, const EvaluationData& b) {
  bool known = true;
  walk(
      a.tasks, b.tasks, [](const EvaluatedTask& task) { return task.task; },
      [&](const EvaluatedTask& in_a, const EvaluatedTask& in_b) {
        known = known && tells_requests(in_a, in_b);
      },
      [](const EvaluatedTask&, char) {});
  return known;
}

bool conflicts(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

TaskPair match_task(const EvaluatedTask& a, const EvaluatedTask& b, Findings& findings) {
  say_conflicts(a.task, a, b, findings);
  if (conflicts(a.primary_metric, b.primary_metric))
    findings.mismatched.push_back(a.task + ": A chose by " + a.primary_metric + ", B by " +
                                  b.primary_metric + ", so that their answers do not compare");
  if (a.has_bare_requests && b.has_bare_requests)
    say_first_tokens(a.task, a.asked, b.asked, "requests without a context", findings);
  TaskPair pair{&a, &b, {}};
  std::int64_t only_a = 0, only_b = 0, answers = 0, requests = 0, lengths = 0, cut = 0;
  walk(
      a.instances, b.instances, [](const EvaluatedInstance& instance) { return instance.doc_id; },
      [&](const EvaluatedInstance& in_a, const EvaluatedInstance& in_b) {
        requests += differ(in_a.requests, in_b.requests);
        const bool unlike = in_a.tokens > 0 && in_b.tokens > 0 && in_a.tokens != in_b.tokens;
        cut += unlike && in_a.requests != 0 && in_a.requests == in_b.requests;
        lengths += unlike && in_a.requests == 0 && in_b.requests == 0;  // both are imported
        if (in_a.label == in_b.label && in_a.options == in_b.options)
          pair.instances.push_back({&in_a, &in_b});
        else
          ++answers;
      },
      [&](const EvaluatedInstance&, char side) { ++(side == 'A' ? only_a : only_b); });
  say_alone(a.task, only_a, "instance", 'A', findings);
  say_alone(a.task, only_b, "instance", 'B', findings);
  say_different(a.task, answers, "instance", "labels or options", findings.mismatched);
  say_different(a.task, requests, "instance", "requests", findings.mismatched);
  say_different(a.task, lengths, "instance",
                "lengths in tokens: other prompts, or another tokenizer", findings.mismatched);
  say_different(a.task, cut, "instance",
                "lengths in tokens for the same prompts: they were cut to another maximum length, "
                "or another tokenizer read them",
                findings.mismatched);
  if (pair.instances.empty() && answers == 0)
    findings.invalid.push_back(a.task + ": there is no instance to compare");
  return pair;
}

const EvaluatedTask* find_task(const EvaluationData& data, const std::string& name) {
  const auto found = std::ranges::find(data.tasks, name, &EvaluatedTask::task);
  return found == data.tasks.end() ? nullptr : &*found;
}

bool asked_the_same(const EvaluatedTask& reference, const EvaluatedTask& task) {
  Findings findings;
  const TaskPair pair = match_task(reference, task, findings);
  return task.is_cost() == reference.is_cost() && findings.invalid.empty() &&
         findings.mismatched.empty() && !pair.instances.empty();
}

std::vector<TaskPair> match_tasks(const EvaluationData& a, const EvaluationData& b,
                                  TaskMetric metric, Findings& findings) {
  const bool cost = metric == TaskMetric::kCost;
  std::vector<TaskPair> pairs;
  walk(
      a.tasks, b.tasks, [](const EvaluatedTask& task) { return task.task; },
      [&](const EvaluatedTask& in_a, const EvaluatedTask& in_b) {
        if ((in_a.is_cost() || in_b.is_cost()) != cost) return;
        TaskPair pair = match_task(in_a, in_b, findings);
        if (!pair.instances.empty()) pairs.push_back(std::move(pair));
      },
      [&](const EvaluatedTask& task, char side) {
        if (task.is_cost() == cost) say_missing(task.task, side, findings);
      });
  return pairs;
}

std::vector<SuitePair> match_suites(const EvaluationData& a, const EvaluationData& b,
                                    bool same_tokenizer, Findings& findings) {
  std::vector<SuitePair> pairs;
  walk(
      a.suites, b.suites, [](const EvaluatedSuite& suite) { return suite.suite; },
      [&](const EvaluatedSuite& in_a, const EvaluatedSuite& in_b) {
        const auto lengths = unlike_lengths(in_a, in_b);
        const bool cut = lengths && were_cut(in_a, in_b, *lengths);
        Findings ignored;  // other windows have other counts
        SuitePair pair = match_suite(in_a, in_b, same_tokenizer, cut ? ignored : findings);
        if (cut)
          findings.mismatched.push_back(in_a.suite +
                                        ": the texts were cut to other maximum lengths, " +
                                        std::to_string(lengths->first) + " and " +
                                        std::to_string(lengths->second) + " tokens");
        if (!pair.documents.empty()) pairs.push_back(std::move(pair));
      },
      [&](const EvaluatedSuite& suite, char side) { say_missing(suite.suite, side, findings); });
  return pairs;
}

}  // namespace olmo::report
