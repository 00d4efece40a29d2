// Deviations between runs that somebody published (`--noise FILE.json`; docs/compare.md has the
// format).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/claims/claim.h"

namespace olmo::report {

struct PublishedDeviation {
  std::string metric;  ///< loss, macro or a task's name
  double parameters = 0, tokens = 0;
  double deviation = 0;              ///< standard deviation between runs, in the metric's unit
  std::optional<std::int64_t> runs;  ///< that it was estimated from
};

struct PublishedNoise {
  std::string source = {};
  std::vector<PublishedDeviation> deviations = {};
};

/// Throws Error(kInput) for a file that is not of the format.
PublishedNoise read_noise(const std::string& path);

/// The deviation of `metric` at the nearest size; nothing where none is within a factor of
/// kSameSize in parameters and in tokens.
const PublishedDeviation* deviation_for(const PublishedNoise& noise, const std::string& metric,
                                        double parameters, double tokens);
inline constexpr double kSameSize = 4;

/// The difference of a pair as a statement about the setups: two runs differ by √2 deviations. The
/// mean loss of a stretch errs by its own noise and by the decimals of logs besides.
Test with_published_noise(const Test& pair, const PublishedDeviation& deviation,
                          const std::string& source);

}  // namespace olmo::report
