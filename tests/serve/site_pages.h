// What the tests of pages share: a site over some runs, and its answers.
#pragma once

#include <string>

#include "serve/served_runs.h"

namespace olmo::test {

inline serve::Response answer(const serve::Site& site, const std::string& target) {
  const auto request = serve::parse_target(target);
  return request ? site.answer(*request) : serve::Response{.status = 400};
}

/// Empty: there is none of this name.
inline std::string header(const serve::Response& response, const std::string& name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return {};
}

}  // namespace olmo::test
