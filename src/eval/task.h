#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/hash.h"
#include "eval/example.h"

namespace olmo::eval {

/// How context and continuation become token ids.
enum class Encoding {
  kSeparate,  ///< each by itself (OLMo, oe)
  kJoint,     ///< context + continuation together, cut after the context's own ids (lm-eval)
};

/// A score by which the options of an instance are ranked, or (of the right one) averaged.
struct MetricDefinition {
  std::string name;  ///< as reported: acc, len_norm, acc_norm, …
  std::string
      score;  ///< a row of kScores in eval/scoring.h: sum, per_char, per_byte, per_token, pmi, …
};

/// A task under one convention, ready to be rendered: `evals/tasks/*.json` says how.
struct Task {
  std::string name;        ///< as asked for, and the key of its results
  std::string id;          ///< canonical: TASK, or TASK:VARIANT (`arc_easy:mc_5shot`)
  std::string convention;  ///< olmo, oe, lm-eval
  std::string category;    ///< for macro averages; may be empty
  Encoding encoding = Encoding::kSeparate;
  std::string primary_metric;
  std::vector<MetricDefinition> metrics;
  Digest definition_digest;  ///< of everything in the definition that decides the requests
  std::vector<std::filesystem::path> files;  ///< of the data set, existing
  Digest data_digest;                        ///< of those files
};

/// A task with its instances.
struct LoadedTask {
  Task task;
  std::vector<Example> examples;
};

}  // namespace olmo::eval
