// The finished evaluations of a side, with the names of what each asked.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/record/side.h"

namespace olmo::report {

/// A finished evaluation, with its finished tasks and suites.
struct NamedEvaluation {
  const store::EvaluationEntry* entry = nullptr;
  std::size_t place = 0;                    ///< among those of its side, the oldest first
  std::map<std::string, Asked> parts = {};  ///< of each task and suite, by name
};

/// `records` has to outlive them.
std::vector<NamedEvaluation> named_evaluations(const SideRecords& records);

/// The evaluation of the latest step; checkpoints may have been evaluated in another order.
/// `evaluations`, of which there is one, are in the order in which they were made: of those of one
/// millisecond the last is taken.
const store::EvaluationEntry& latest_of(const std::vector<store::EvaluationEntry>& evaluations);

std::set<std::string> names_of(const std::map<std::string, Asked>& parts);
std::set<std::string> names_of(const NamedEvaluation& one);

std::set<std::string> in_both(const std::set<std::string>& a, const std::set<std::string>& b);

/// What both were asked of as many instances, cut to the same length.
std::set<std::string> asked_alike(const NamedEvaluation& a, const NamedEvaluation& b);

/// Texts were read by the same tokenizer, weights and hidden states rounded in the same way.
bool computed_alike(const store::EvaluationEntry& a, const store::EvaluationEntry& b);

/// The same weights at the same step, computed alike, whatever was asked.
bool same_model(const store::EvaluationEntry& a, const store::EvaluationEntry& b);

}  // namespace olmo::report
