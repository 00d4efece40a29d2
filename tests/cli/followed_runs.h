// Runs that were looked at whole, as `runs watch` follows them.
#pragma once

#include <string>
#include <vector>

#include "monitor/followed_run.h"
#include "store/run_fixture.h"

namespace olmo::test {

inline std::vector<monitor::FollowedRun> followed(const std::vector<RecordedCurve*>& runs) {
  std::vector<monitor::FollowedRun> list;
  for (auto* run : runs) {
    list.emplace_back(run->path().string());
    list.back().look(1'000'000);
  }
  return list;
}

}  // namespace olmo::test
