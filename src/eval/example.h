#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace olmo::eval {

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

}  // namespace olmo::eval
