// What `runs watch` shows: a page of text for a terminal of any size, and a line for a log.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "monitor/followed_run.h"
#include "page/terminal_chart.h"

namespace olmo::cli {

struct FrameOptions {
  std::size_t columns = 80, rows = 24;
  page::TerminalInk ink = {};
  bool log_values = false;  ///< the loss on a logarithmic axis
  bool log_steps = false;
  bool paused = false;
  bool keys = false;         ///< the last line names the keys
  std::size_t selected = 0;  ///< of several runs the one that is shown alone, from 1; 0: all
};

/// At most options.rows lines of at most options.columns columns; they may hold escape sequences of
/// colours and nothing else that a terminal obeys.
std::vector<std::string> watch_frame(std::span<const monitor::FollowedRun> runs,
                                     const FrameOptions& options);

/// One line that says how far a run is.
std::string watch_line(const monitor::FollowedRun& run);

}  // namespace olmo::cli
