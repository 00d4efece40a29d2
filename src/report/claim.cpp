#include "report/claim.h"

namespace olmo::report {

const char* to_string(Scope scope) { return scope == Scope::kModels ? "models" : "setups"; }

const char* to_string(MarginSource source) {
  if (source == MarginSource::kDeclared) return "declared";
  if (source == MarginSource::kCommandLine) return "command line";
  return source == MarginSource::kRepeats ? "repeats" : "default";
}

const Margin& Margins::of(Endpoint endpoint) const {
  if (endpoint == Endpoint::kLoss) return loss;
  if (endpoint == Endpoint::kMacro) return macro;
  return endpoint == Endpoint::kBpb ? bpb : task;
}

}  // namespace olmo::report
