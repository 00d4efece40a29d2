// The numbers behind curves, as programs and the page's script read them: bins of a range of steps,
// and what has come since.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "serve/run_set.h"
#include "store/runs/series.h"

namespace olmo::serve {

/// A curve of the steps, and how it is drawn.
struct StepCurve {
  const char* column;
  const char* title;
  const char* unit;
  const char* group;
  bool may_be_log = false;  ///< where its values reach over more than a power of ten and a half
};
std::span<const StepCurve> step_curves();
/// The columns of step_curves(), then `tokens` and `seconds`.
store::Quantities step_quantities();

/// Bins of runs, kept from one look to the next: a run that goes on costs its new rows only. Made
/// by one thread at a time for each run and range.
class CurveCache {
 public:
  struct Kept {
    std::mutex mutex;
    std::optional<store::SeriesBins> bins;
  };
  /// Of a run and what is wanted of it, in at most `bins` bins. Those that nobody asked for in the
  /// longest time are let go where all together would be more than kMostBins.
  std::shared_ptr<Kept> kept(const std::string& name, std::size_t bins);
  static constexpr std::size_t kMostBins = 100'000;  ///< 60 MB; two pages of a hundred runs

 private:
  struct Entry {
    std::shared_ptr<Kept> kept;
    std::size_t bins = 0;
    std::uint64_t used = 0;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::size_t bins_ = 0;  ///< of all entries
  std::uint64_t clock_ = 0;
};

struct WantedCurves {
  bool metrics = false;  ///< the table `metrics` instead of the steps' columns
  std::size_t points = 600;
  store::StepRange range = {};
};

/// {key, active, line, last, complete, starts, step, rows, tokens, seconds, of: {NAME: {low, mean,
/// high}}}: `seconds` is the time of training up to each bin, `line` changes where steps were
/// replaced. A loss that is not finite somewhere has `not_finite`, too: how often in each bin. Not
/// `complete`: reading takes long, ask again.
nlohmann::ordered_json curves_json(const ChosenRun& run, const WantedCurves& wanted,
                                   CurveCache& cache);

/// The steps after `after` as they are: {key, active, line, last, behind, step, tokens, seconds,
/// of: {NAME: values}}. `behind`: there are more than a page appends.
nlohmann::ordered_json new_steps_json(const ChosenRun& run, std::int64_t after, bool metrics);

/// What the address asks for: `of=metrics`, `points`, `from`, `to`.
WantedCurves wanted_curves(const Request& request);
/// A whole number of the address, or `text`, one of its values called `name`; `otherwise` where it
/// has none. Throws Error(kUsage).
std::int64_t number_in(const std::string& text, const std::string& name, std::int64_t otherwise);
std::int64_t number_of(const Request& request, const std::string& name, std::int64_t otherwise);

}  // namespace olmo::serve
