#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"

namespace olmo::eval {

/// How context and continuation become token ids.
enum class Encoding {
  kSeparate,  ///< each by itself (OLMo, oe)
  kJoint,     ///< context + continuation together, cut after the context's own ids (lm-eval)
};

/// What OLMo cuts the requests of a task to, however long its model's sequences are
/// (olmo/eval/downstream.py: `model_ctx_len`).
inline constexpr std::int64_t kOlmoMaxLength = 2048;

/// A score by which the options of an instance are ranked, or (of the right one) averaged.
struct MetricDefinition {
  std::string name;  ///< as reported: acc, len_norm, acc_norm, …
  std::string
      score;  ///< a row of kScores in eval/scoring.h: sum, per_char, per_byte, per_token, pmi, …
};

/// A stretch of a task's instances: one data set.
struct TaskSource {
  std::vector<std::filesystem::path> files;  ///< existing, in the order of their rows
  std::vector<std::filesystem::path> shots;  ///< whose rows are the examples in the prompt
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
  std::string origin;        ///< the task file, as errors name it
  std::string definition;    ///< what decides the requests: canonical JSON
  Digest definition_digest;  ///< its SHA-256
  std::vector<TaskSource> sources;
  Digest data_digest;  ///< SHA-256 over the SHA-256 of each file
};

/// A candidate answer as the model is asked it. Continuations carry their leading space.
struct Option {
  std::string context;
  std::string continuation;
  std::optional<std::string> unconditional;  ///< the domain prompt that stands for "no context"
};

/// One instance of a multiple-choice task, rendered.
struct Example {
  std::int64_t doc_id = 0;
  std::string native_id;
  std::int64_t label = 0;  ///< index of the right option
  std::vector<Option> options;
};

/// A task with its instances.
struct LoadedTask {
  Task task;
  std::vector<Example> examples;
};

}  // namespace olmo::eval
