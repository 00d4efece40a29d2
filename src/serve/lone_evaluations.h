// Evaluations that belong to no run of their database: of a model from elsewhere, or written into a
// database of their own. They stand below the runs on the first page, and in a run's place on the
// pages of evaluations and instances.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/evaluations/evaluation_scores.h"
#include "serve/catalog.h"

namespace olmo::serve {

struct LoneEvaluations {
  std::vector<LoneEvaluation> newest;  ///< without keys and places, which the catalog gives
  std::int64_t others = 0;             ///< that are older than those
};
/// Of a database. Throws as store::EvaluationDb.
LoneEvaluations read_lone_evaluations(store::RecordDatabase& records);

/// The section of the first page; empty if there are none. `words`, in small letters, stand in all
/// that are shown.
std::string lone_evaluations_html(const Listing& listing,
                                  const std::vector<std::string_view>& words);
nlohmann::ordered_json lone_evaluations_json(const Listing& listing);

/// What an evaluation is of, and how it was made.
std::string evaluation_facts_html(const Listing& listing, const LoneEvaluation& evaluation);

}  // namespace olmo::serve
