// Several runs in the frame of `runs watch`: a table of them, or two beside each other.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "monitor/followed_run.h"

namespace olmo::cli {

using Lines = std::vector<std::string>;
using Runs = std::span<const monitor::FollowedRun* const>;

std::string name_of(const monitor::FollowedRun& run);
/// What tells the runs: their names, or as they were asked for where two have one name.
Lines labels_of(Runs runs);
/// "running", "waiting", "not readable now".
std::string state_of(const monitor::FollowedRun& run);

/// A line for each run, in so many columns.
Lines table_of(Runs runs, std::size_t columns);

/// Two runs beside each other, and what the second is more than the first: state and numbers, then
/// evaluations, for which there may be no room.
struct Comparison {
  Lines numbers, evaluations;
};
Comparison comparison_of(Runs runs, std::size_t columns);

}  // namespace olmo::cli
