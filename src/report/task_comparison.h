#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/interval.h"
#include "report/paired_outcomes.h"
#include "report/recorded_evaluation.h"
#include "report/verdict.h"

namespace olmo::report {

/// An instance for which the two sides chose differently.
struct Flip {
  std::string task;
  std::int64_t doc_id = 0, label = 0, chosen_a = 0, chosen_b = 0;
  double margin_a = 0, margin_b = 0;           ///< of the primary metric's score
  std::vector<double> logprobs_a, logprobs_b;  ///< nats, by option
  bool explained = false;                      ///< both margins are within the noise
};

/// Differences of the options' log-likelihoods, B minus A (Bland and Altman 1986).
struct ScoreAgreement {
  std::int64_t options = 0;
  std::int64_t equal_bits = 0;
  double mean = 0, standard_deviation = 0;
  double low = 0, high = 0;  ///< limits of agreement: mean ± 1.96 standard deviations
  double largest = 0;        ///< |difference|
};

struct TaskComparison {
  std::string task, metric;
  std::int64_t n = 0;
  PairedCounts counts;
  double accuracy_a = 0, accuracy_b = 0, difference = 0;  ///< fractions, B minus A
  Interval interval95;
  double p = 1;                  ///< McNemar, mid-p
  double holm_p = 1;             ///< over all tasks
  double discordance_floor = 0;  ///< d0 of the noise floor
  Equivalence equivalence;       ///< with its margin and 90 % interval
  double detectable = 0;         ///< smallest difference found with power 0.8
  std::int64_t needed_n = 0;     ///< instances to certify the margin at the discordance seen
  ScoreAgreement agreement;
  std::int64_t flips = 0, explained_flips = 0;
};

struct MacroComparison {
  double accuracy_a = 0, accuracy_b = 0, difference = 0;
  Interval interval95;      ///< stratified paired bootstrap
  Equivalence equivalence;  ///< macro_equivalence
};

struct TasksComparison {
  std::vector<TaskComparison> tasks;
  std::optional<MacroComparison> macro;
  double noise = 0;          ///< of a margin: what explains a flip
  std::string noise_source;  ///< one sentence
  std::vector<Flip> flips;   ///< unexplained ones first, at most kListedFlips
  std::int64_t all_flips = 0, all_explained = 0;
  double all_pass_p = 1;                ///< intersection-union p of all equivalences
  std::vector<std::string> invalid;     ///< missing or unequal: INVALID_DATA
  std::vector<std::string> mismatched;  ///< other prompts or data: NOT_COMPARABLE
};
inline constexpr std::size_t kListedFlips = 200;

/// d0 of each task from repeated evaluations of one side; empty: no noise floor (d0 = 0).
struct DiscordanceFloor {
  std::string task;
  double share = 0;
};

/// `kind` decides what can explain a flip: with the same weights numeric noise, else nothing.
TasksComparison compare_tasks(const EvaluationData& a, const EvaluationData& b, Kind kind,
                              const std::vector<DiscordanceFloor>& floor);

/// The discordance of repeated evaluations: for each task the largest share of instances that
/// exactly one of two repeats gets right.
std::vector<DiscordanceFloor> discordance_floor(const std::vector<EvaluationData>& repeats);

}  // namespace olmo::report
