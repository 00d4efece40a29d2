#pragma once

#include <string>
#include <vector>

#include "report/record/recorded_evaluation.h"

// Two evaluations side by side. What one side does not know (an empty text, the hash 0) is never
// held against the other.

namespace olmo::report {

inline constexpr double kPoints = 100;  ///< percentage points of a fraction

/// What keeps two evaluations from being compared, one sentence each, with names and numbers.
struct Findings {
  std::vector<std::string> invalid;     ///< a side lacks something, or counts are unequal
  std::vector<std::string> mismatched;  ///< both have it, but it is not the same
};

struct InstancePair {
  const EvaluatedInstance* a;
  const EvaluatedInstance* b;
};

/// A task that both sides have, with the instances that have the same label and number of options
/// on both: at least one.
struct TaskPair {
  const EvaluatedTask* a;
  const EvaluatedTask* b;
  std::vector<InstancePair> instances;
};

struct DocumentPair {
  const EvaluatedDocument* a;
  const EvaluatedDocument* b;
};

/// A suite that both sides have, with the documents that have the same source, text and counts.
struct SuitePair {
  const EvaluatedSuite* a;
  const EvaluatedSuite* b;
  std::vector<DocumentPair> documents;
};

/// True if both sides know it and it differs.
bool conflicts(const std::string& a, const std::string& b);

/// True if both sides tell, of every task that both have, what was asked.
bool requests_known(const EvaluationData& a, const EvaluationData& b);

/// Both sides of one task.
TaskPair match_task(const EvaluatedTask& a, const EvaluatedTask& b, Findings& findings);

/// Whether both asked the same of the same instances, and answers are compared in the same way.
bool asked_the_same(const EvaluatedTask& a, const EvaluatedTask& b);

/// Null where there is none of that name.
const EvaluatedTask* find_task(const EvaluationData& data, const std::string& name);

/// Which tasks: those whose metric is a cost (on either side), or the others.
enum class TaskMetric { kAccuracy, kCost };

/// The tasks by name, the instances by doc_id.
std::vector<TaskPair> match_tasks(const EvaluationData& a, const EvaluationData& b,
                                  TaskMetric metric, Findings& findings);

/// The suites by name, the documents by index. `same_tokenizer`: counts of tokens must be equal.
std::vector<SuitePair> match_suites(const EvaluationData& a, const EvaluationData& b,
                                    bool same_tokenizer, Findings& findings);

}  // namespace olmo::report
