// A run of six steps, without a database.
#pragma once

#include <cstdint>
#include <string>

#include "store/runs/recorded_run.h"

namespace olmo::test {

/// A run of six steps; equal to any other, up to what a test changes.
inline store::RecordedRun run_of_six() {
  store::RecordedRun run;
  run.experiment_digest = "e";
  for (std::int64_t step = 1; step <= 6; ++step) {
    const auto number = static_cast<std::uint64_t>(step);
    run.steps.step.push_back(step);
    run.steps.tokens.push_back(8 * step);
    run.steps.loss.push_back(10.0 / static_cast<double>(step));
    run.steps.grad_norm.push_back(0.5);
    run.steps.batch.push_back(number);
    run.steps.chain.push_back(100 + number);
    run.steps.values.push_back(200 + number);
  }
  run.last_chain = "c";
  return run;
}

inline constexpr char kPortablePolicy[] = R"({"numerics":"portable","isa":"avx2"})";
inline constexpr char kFastPolicy[] = R"({"numerics":"fast","isa":"avx512"})";

inline store::RecordedRun run_under(const std::string& policy) {
  store::RecordedRun run = run_of_six();
  run.attempts.emplace_back().policy = policy;
  return run;
}

}  // namespace olmo::test
