// What a parity report claims, and the tests that a claim rests on. Plain values: the rules that
// turn them into a verdict (decide.h) need neither a database nor text.
//
// Who measures (curves, repeats, evaluations) makes a Test without a margin: endpoint, method,
// unit, estimate, intervals, p, n, k. decide() adds what follows from the margin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/claims/verdict.h"
#include "report/stats/interval.h"

namespace olmo::report {

/// What a claim is about.
enum class Scope {
  kModels,  ///< these two models; one run a side is enough
  kSetups,  ///< what the two clusters would train; needs repeats, branches or a published noise
};
/// models, setups.
const char* to_string(Scope scope);

/// In this order endpoints are tested for equivalence, each at kAlpha; the first that is not
/// certified ends the order. `kScores`, the log-likelihoods, only of the same weights.
enum class Endpoint { kScores, kLoss, kMacro, kBpb, kTask };

enum class MarginSource { kDeclared, kCommandLine, kRepeats, kDefault };
/// "declared", "command line", "repeats", "default".
const char* to_string(MarginSource source);

struct Margin {
  double value = 0;  ///< in the unit of its test
  MarginSource source = MarginSource::kDefault;
  std::string who = {}, when = {};  ///< of a declared one; else empty
  std::string reason = {};          ///< one sentence: why this value
};

/// One margin an endpoint. That of the scores comes with their test, as it follows from the
/// precision.
struct Margins {
  Margin loss, macro, bpb, task;  ///< nats, percentage points, bits per byte, percentage points

  [[nodiscard]] const Margin& of(Endpoint endpoint) const;
};

/// By the names of `--margin`: loss, macro, bpb, task; in the units of Margins.
using GivenMargins = std::map<std::string, double>;
/// `loss=0.01,macro=0.5`. Throws Error(kUsage) for another name and a value that is not positive.
GivenMargins parse_margins(const std::string& text);

struct DeclaredMargin {
  double value = 0;
  std::string who, when;
};
struct RepeatDeviation {
  double pooled = 0;  ///< standard deviation
  double factor = 2;  ///< that makes a margin of it: margin_deviations
};
struct MarginSources {
  std::map<std::string, DeclaredMargin> declared = {};
  GivenMargins command_line = {};
  /// Between repeats, of the loss (nats) and the macro average (pp).
  std::optional<RepeatDeviation> loss_deviation = {}, macro_deviation = {};
  bool one_trajectory = false;
};
/// Declared, else from the command line, else `factor` deviations between repeats (at most
/// kLargestLossMargin, kLargestMacroMargin), else a default.
Margins resolve_margins(const MarginSources& sources);
/// Repeats that vary more than this do not make a difference of that size negligible.
inline constexpr double kLargestLossMargin = 0.02, kLargestMacroMargin = 2;
/// That of one trajectory, and the least that repeats give: nats.
inline constexpr double kSmallestLossMargin = 0.002;
/// Of bits per byte; of bits per token as well, where it is the stricter one.
inline constexpr double kBpbMargin = 0.002;

/// One comparison: an estimate of a difference (B minus A), with its uncertainty.
struct Test {
  Endpoint endpoint = Endpoint::kLoss;
  std::string name = {};    ///< "loss of the last stretch", "macro average", a task's name, …
  std::string method = {};  ///< "Welch, 6 and 6 runs", "paired t, 20 branches", "moving blocks", …
  std::string unit = {};    ///< "nats", "pp", "bits per byte"
  std::string noise = {};   ///< source of a published noise; empty: measured here
  double estimate = 0;
  Interval interval90 = {}, interval95 = {};
  std::optional<double> p = {};               ///< of "no difference", two-sided; absent: not tested
  std::optional<double> standard_error = {};  ///< of the estimate, for the power
  std::optional<double> degrees_of_freedom = {};  ///< of its t distribution; absent: normal
  double hidden = 0;              ///< by the decimals of logs: the intervals are widened by it
  std::int64_t n = 0;             ///< instances, documents, points
  std::int64_t k_a = 1, k_b = 1;  ///< runs
  bool equal_bits = false;        ///< every value (loss, choice, score) is the same on both sides
  /// Values for a test: never certified, never different, and intervals and `excludes` say nothing.
  bool too_few = false;
  bool difference_only = false;  ///< tested for a difference, not for equivalence

  // From here on decide() fills in.
  bool primary = false;
  Margin margin = {};
  std::optional<double> holm_p = {};  ///< over all tests of differences of the claim
  double excludes = 0;         ///< smallest true |difference| that the data exclude with 95 %
  bool within_margin = false;  ///< interval90 lies inside ±margin
  bool certified = false;      ///< within_margin, and so is every primary endpoint before it
  bool different = false;      ///< holm_p <= kAlpha
  /// Probability that equal sides would have been certified with such data.
  std::optional<double> power = {};
};

struct Claim {
  Scope scope = Scope::kModels;
  Verdict verdict = Verdict::kInconclusive;
  std::string sentence = {};                 ///< may be quoted as it is
  std::vector<Test> tests = {};              ///< in the order of endpoints
  std::optional<std::size_t> deciding = {};  ///< of tests
  std::string stronger = {};  ///< what would make it stronger, and what to run; empty: nothing

  [[nodiscard]] const Test* decided_by() const { return deciding ? &tests[*deciding] : nullptr; }
};

/// The error probabilities that a claim spends.
struct AlphaSpent {
  double equivalence = kAlpha;  ///< for all endpoints together, as their order is fixed
  double difference = kAlpha;   ///< for all tests together, by Holm
  std::int64_t difference_tests = 0;
};

/// A setting that at least one record does not tell: neither equal nor different. One that is not
/// assumed caps the verdict at CONSISTENT.
struct UnknownFact {
  std::string key = {};        ///< what --assume calls it, e.g. `global_train_batch_size`
  std::string a = {}, b = {};  ///< what the records tell; empty: nothing
  MismatchClass if_different = MismatchClass::kConfound;
  std::string reason = {};   ///< one sentence: what it could hide
  std::string assumed = {};  ///< VALUE of --assume KEY=VALUE; empty: not assumed
};

}  // namespace olmo::report
