// Parts of the reports' JSON. A number that is not finite or absent is null.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/evaluations/evaluation_scores.h"
#include "report/parity.h"

namespace olmo::report::page {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of(double value);
OrderedJson json_of(const std::optional<double>& value);
OrderedJson json_of(const Interval& interval);
OrderedJson json_of(const Equivalence& equivalence);
OrderedJson json_of(const Side& side);
OrderedJson json_of(const Mark& mark);
OrderedJson json_of(const Efficiency& efficiency);
OrderedJson json_of(const AuditedStretch& audit);
OrderedJson json_of(const EvaluationScores& evaluation);

// `Result` is a parameter so that the JSON library need be parsed only where these are called.
template <class Values, class Result = OrderedJson>
Result json_list(const Values& values) {
  Result list = Result::array();
  for (const auto& value : values) list.push_back(json_of(value));
  return list;
}

template <class Value, class Result = OrderedJson>
Result json_or_null(const std::optional<Value>& value) {
  return value ? json_of(*value) : Result(nullptr);
}

}  // namespace olmo::report::page
