#pragma once

#include "report/record/side.h"

namespace olmo::report {

/// Two steps of eight tokens, a start and a tokenizer: all that the gate looks at.
inline store::RecordedRun a_run(const std::string& config = R"({"model":{"d_model":8}})") {
  store::RecordedRun run;
  run.label = "a run";
  run.config = config;
  run.steps.step = {1, 2};
  run.steps.tokens = {8, 16};
  run.steps.loss = {10.0, 9.0};
  run.steps.grad_norm = {1.0, 1.0};
  run.steps.batch = {11, 12};
  run.steps.chain = {21, 22};
  run.state_hashes[0] = {{"model", "weight", "hash of the start"}};
  run.inputs = {{"tokenizer", "tokenizer.json", 5, "0123456789abcdef"},
                {"tokens", "part-0.npy", 9, "fedcba9876543210"}};
  return run;
}

inline Side side(store::RecordedRun run) {
  Side made;
  made.run = std::move(run);
  return made;
}

}  // namespace olmo::report
