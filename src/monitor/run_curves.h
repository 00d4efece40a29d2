// The curves of a run that a terminal shows, kept while the run goes on: a look costs the rows that
// are new.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "page/chart.h"
#include "store/runs/series.h"

namespace olmo::monitor {

/// What is drawn of a run, in the order in which it matters.
struct Drawn {
  const char* column;
  const char* title;
};
inline constexpr Drawn kDrawn[] = {{"ce_loss", "loss"},
                                   {"grad_norm", "gradient norm"},
                                   {"lr", "learning rate"},
                                   {"tokens_per_second", "tokens/s"},
                                   {"mfu", "MFU"}};

/// Bins of the store as bins of a chart, over steps. `which`: of the quantities. Each step has a
/// loss, so one that is not there was not finite: a bin whose mean is NaN says where.
std::vector<page::Bin> chart_bins(std::span<const store::SeriesBin> bins, std::size_t which);

/// b minus a of the bins' means, where bins of both hold the same steps.
std::vector<page::Bin> difference(const store::SeriesBins& a, const store::SeriesBins& b,
                                  std::size_t which);

class RunCurves {
 public:
  RunCurves();

  /// Reads at most `rows` rows on; until all were read once, single points are shown.
  void follow(const store::RecordDatabase& records, const store::RunLine& line, std::size_t rows);
  /// The curve kDrawn[which].
  [[nodiscard]] std::vector<page::Bin> curve(std::size_t which) const;
  /// Whether all rows are in the curves.
  [[nodiscard]] bool is_whole() const { return whole_; }
  [[nodiscard]] const store::SeriesBins& bins() const { return bins_; }

 private:
  store::SeriesBins bins_;
  std::optional<store::SeriesPoints> points_;
  bool whole_ = false;
};

}  // namespace olmo::monitor
