// A run as other tools' files want it: what it is, and its numbers step by step, read while they
// are written, so that a run of any length needs little memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/runs/run_db.h"

namespace olmo::exports {

struct NamedNumber {
  std::string name;
  double value = 0;
};

struct NamedText {
  std::string name;
  std::string text;
};

/// What was recorded at a step.
struct Point {
  std::int64_t step = 0;    ///< tokens, of an import that tells no steps
  double unix_seconds = 0;  ///< when the step was done: the attempt's start and its steps' seconds
  std::vector<NamedNumber> numbers;  ///< at least one
};

using OnPoint = std::function<void(const Point&)>;

/// The status of a run whose record was not ended, and that no process has.
inline constexpr char kKilled[] = "killed";

/// What is said once.
struct RunFacts {
  std::string run_id, name, status;
  std::string config;               ///< JSON
  std::vector<NamedText> settings;  ///< its leaves: `model.d_model` -> `64`, JSON text
  std::vector<std::string> tags;
  std::vector<NamedText> machine;  ///< host, device, numerics, revision, …, energy: as text
  double begin = 0, end = 0;       ///< Unix seconds
};

RunFacts read_facts(const store::RunDb& db, const std::string& run_id);

/// Calls `visit` with the points of the line that led to the present weights, by step: the numbers
/// of the step, metrics, and the scores of finished evaluations of the run.
void for_each_point(store::RunDb& db, const std::string& run_id, const OnPoint& visit);

}  // namespace olmo::exports
