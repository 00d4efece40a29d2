// `olmo-harness runs watch RUN…`: runs as they go on, in a terminal.
#include <algorithm>
#include <iostream>
#include <limits>
#include <thread>

#include "cli/commands.h"
#include "cli/given_path.h"
#include "cli/run_row.h"
#include "cli/screen/screen.h"
#include "cli/screen/watch_frame.h"
#include "core/environment_variable.h"
#include "core/error.h"

namespace olmo::cli {
namespace {

using monitor::FollowedRun;
using Clock = std::chrono::steady_clock;

/// Rows of a look, so that a page with long runs soon stands: some tenths of a second.
constexpr std::size_t kRowsOfLook = 200'000;

struct RunsWatchArguments {
  std::vector<std::string> runs;
  std::optional<std::int64_t> interval;
  bool once = false;
};

FrameOptions frame_options(bool may_colour) {
  const auto [columns, rows] = screen_size();
  FrameOptions options{.columns = columns, .rows = rows};
  options.ink = {.unicode = locale_is_utf8(),
                 .colour = may_colour && environment_variable("NO_COLOR").empty()};
  return options;
}

/// Says what is wrong with the record of a run that is there, and marks it. It is checked once: a
/// watch shows what comes.
void check(FollowedRun& run) {
  if (!run.view()) return;
  try {
    const store::RecordDatabase records(store::parse_run_name(run.name()).database,
                                        store::OpenMode::kGlance);
    const auto found = report::check_short_record(records, run.view()->run.run_id);
    warn_of(records, found);
    if (found.state != report::RecordCheck::State::kSound) run.set_mark(to_string(found.state));
  } catch (const Error&) {  // the next look tells of a database that is gone or cannot be read
  }
}

/// One frame, with all rows read.
int show_once(std::vector<FollowedRun>& runs) {
  for (auto& run : runs) {
    run.look(std::numeric_limits<std::size_t>::max());
    if (!run.view()) throw Error(run.problem_kind(), run.problem());
    check(run);
  }
  for (const auto& line : watch_frame(runs, frame_options(false)))
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  return 0;
}

/// A line a run, again and again, until all have ended or were killed.
int print_lines(std::vector<FollowedRun>& runs, std::chrono::seconds interval) {
  for (bool first = true;; first = false) {
    for (auto& run : runs) {
      run.look(1);  // no curve is shown
      if (first) check(run);
      std::cout << watch_line(run) << "\n";
    }
    std::cout.flush();
    if (!std::cout) return 0;  // nobody reads any more
    if (std::ranges::all_of(runs, &FollowedRun::has_ended)) return 0;
    std::this_thread::sleep_for(interval);
  }
}

/// Reads what is new in the records. Returns whether nothing is left to be read now.
bool look_at(std::vector<FollowedRun>& runs, Screen& screen) {
  bool whole = true;
  for (auto& run : runs) {
    const bool failed = !run.problem().empty();
    run.look(kRowsOfLook);
    // It was opened again, and a warning of that may stand on the page.
    if (failed && run.problem().empty()) screen.forget();
    whole = whole && (run.curves().is_whole() || !run.problem().empty());
  }
  return whole;
}

/// What a key changes on a page with so many runs. Returns the exit code of one that ends it.
std::optional<int> apply(Wish wish, FrameOptions& options, std::size_t runs) {
  const std::size_t choices = runs > 1 ? runs + 1 : 1;
  switch (wish) {
    case Wish::kQuit:
      return 0;
    case Wish::kInterrupt:
      return static_cast<int>(ErrorKind::kInterrupted);
    case Wish::kPause:
      options.paused = !options.paused;
      break;
    case Wish::kLogValues:
      options.log_values = !options.log_values;
      break;
    case Wish::kLogSteps:
      options.log_steps = !options.log_steps;
      break;
    case Wish::kNext:
      options.selected = (options.selected + 1) % choices;
      break;
    case Wish::kBefore:
      options.selected = (options.selected + choices - 1) % choices;
      break;
    case Wish::kNothing:
    case Wish::kRedraw:
      break;
  }
  return std::nullopt;
}

/// The page until it is quit. A run that ended stays, to be looked at.
int show_page(std::vector<FollowedRun>& runs, std::chrono::seconds interval) {
  FrameOptions options = frame_options(true);
  options.keys = true;
  // Databases are opened before the page is: what is to be warned of stays readable behind it.
  for (auto& run : runs) {
    run.look(1);
    check(run);
  }
  Screen screen;
  auto due = Clock::now();
  while (true) {
    if (!options.paused && Clock::now() >= due) {
      const bool whole = look_at(runs, screen);
      // What is still to be read is read at once; keys are heard in between.
      due = Clock::now() + (whole ? Clock::duration(interval) : Clock::duration::zero());
    }
    const auto [columns, rows] = screen_size();
    options.columns = columns;
    options.rows = rows;
    screen.show(watch_frame(runs, options));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now());
    const auto most = options.paused ? std::chrono::milliseconds(interval) : left;
    const Wish wish = screen.wait(std::max(most, std::chrono::milliseconds(0)));
    if (const auto ended = apply(wish, options, runs.size())) return *ended;
  }
}

int watch(const RunsWatchArguments& options) {
  std::vector<FollowedRun> runs;
  for (const auto& name : options.runs) {
    require_run("runs watch", name);
    runs.emplace_back(name);
  }
  if (options.once) return show_once(runs);
  const bool page = has_screen();
  const std::chrono::seconds interval(options.interval.value_or(page ? 1 : 10));
  return page ? show_page(runs, interval) : print_lines(runs, interval);
}

}  // namespace

void add_runs_watch(const Command& runs) {
  const Command command = runs.add("watch", "Follow runs in the terminal as they train");
  auto& options = command.options<RunsWatchArguments>();
  command.option("RUN", options.runs, kRunForms + std::string("; may be to come"))
      .required()
      .takes(Takes::kRun);
  command.number("--interval", options.interval, {1, 86'400},
                 "Seconds between looks (1; 10 where the output is no terminal)");
  command.flag("--once", options.once, "Print the page once and end");
  command.footer(
      "Shows curves of loss, gradient norm, learning rate, tokens/s and MFU, the time that is "
      "left, "
      "evaluations, checkpoints, energy and the last events. Two runs stand beside each other with "
      "their difference; more are a table. Where the output is no terminal, a line a run is "
      "printed until all runs have ended, or no process has them.\n"
      "Keys: q quits, space pauses, l and x make the loss and the steps logarithmic, left and "
      "right "
      "choose one of several runs.\n"
      "Example: olmo-harness runs watch runs/quickstart\n"
      "Example: olmo-harness runs watch runs/a runs/b");
  command.action([&options] { return watch(options); });
}

}  // namespace olmo::cli
