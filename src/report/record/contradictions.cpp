#include "report/record/contradictions.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/run_columns.h"
#include "config/train_config.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/hash.h"
#include "core/text/text.h"
#include "report/record/altered_steps.h"
#include "report/record/measures.h"

namespace olmo::report {
namespace {

/// The sentences of one run.
class Contradictions {
 public:
  explicit Contradictions(const store::RecordedRun& run) : run_(run) {}

  std::vector<std::string> find() {
    if (run_.imported) {
      compare_logged_seed();
      return std::move(found_);
    }
    if (run_.chain_format != kChainFormat) return {};  // other keys entered the digest then
    // A config that cannot be read may be a newer program's, if it is one.
    if (config::has_digest(run_.config, run_.experiment_digest) == false ||
        !recorded_json(run_.config).is_object())
      return {kAlteredConfig};
    compare_ends();
    compare_ranks();
    for (auto& sentence : impossible_measures(run_)) found_.push_back(std::move(sentence));
    if (const auto config = config::run_columns(run_.config)) {
      compare_with(*config);
      compare_strategies(config->config);
      compare_numerics(config->config);
      if (chain_holds())
        if (auto altered = altered_step(run_, *config)) found_.push_back(*std::move(altered));
    }
    return std::move(found_);
  }

 private:
  /// Where it does not, the record's damage tells of the step, and an audit of the column.
  [[nodiscard]] bool chain_holds() const {
    return std::ranges::none_of(run_.damage, [](const store::Finding& finding) {
      return finding.quantity == "chain_hash";
    });
  }

  void add(const std::string& column, const std::string& value, const std::string& what,
           const std::string& other) {
    found_.push_back(column + " is " + value + ", and " + what + " " + other +
                     ": one of them was altered");
  }
  template <class Value>
  void compare(const std::string& column, Value value, const std::string& what, Value other) {
    if (value != other) add(column, std::to_string(value), what, std::to_string(other));
  }

  void compare_logged_seed() {
    const Json config = recorded_json(run_.config);
    if (!config.is_object() || !config.contains("seed")) return;
    const Json& seed = config["seed"];
    if (seed.is_number_unsigned())
      compare("runs.seed", run_.seed, "its config says", seed.get<std::uint64_t>());
  }

  void compare_ends() {
    if (run_.attempts.empty()) return;
    const auto& last = run_.attempts.back();
    const std::string outcome = last.outcome.empty() ? "running" : last.outcome;
    if (run_.status != outcome)
      add("runs.status", run_.status, "its last attempt is recorded as", outcome);
    if (run_.steps.size() == 0) return;
    const std::int64_t end = run_.steps.step.back();
    if (end > run_.max_steps)
      add("runs.max_steps", std::to_string(run_.max_steps), "its last step is",
          std::to_string(end));
    else if (run_.status == "diverged" && end == run_.max_steps)
      add("runs.status", "diverged", "its last step is the last of the training,",
          std::to_string(end));
  }

  /// Each rank of an attempt has a row.
  void compare_ranks() {
    for (const auto& attempt : run_.attempts) {
      const auto ranks =
          std::ranges::count(run_.ranks, attempt.attempt, &store::RankRecord::attempt);
      if (ranks > 0 && attempt.world_size)
        compare("attempts.world_size of attempt " + std::to_string(attempt.attempt),
                *attempt.world_size, "the ranks that it recorded are",
                static_cast<std::int64_t>(ranks));
    }
  }

  /// A later attempt may be of another strategy, which the first one's config does not tell; that
  /// of one rank is always the same.
  void compare_strategies(const config::TrainConfig& config) {
    for (const auto& attempt : run_.attempts) {
      if (!attempt.world_size || attempt.strategy.empty()) continue;
      const bool first = &attempt == &run_.attempts.front();
      const std::string expected = config::strategy_name(config, *attempt.world_size);
      const bool known = first || *attempt.world_size == 1 || attempt.strategy == "single";
      if (known && attempt.strategy != expected)
        add("attempts.strategy of attempt " + std::to_string(attempt.attempt), attempt.strategy,
            "of " + counted(*attempt.world_size, "rank") + " its config gives", expected);
    }
  }

  /// Of every attempt: no start goes on under other numerics (train/resume_checks.h).
  void compare_numerics(const config::TrainConfig& config) {
    for (const auto& attempt : run_.attempts) {
      const Json policy = recorded_json(attempt.policy);
      if (!policy.is_object() || !policy.contains("numerics")) continue;
      const Json& numerics = policy["numerics"];
      if (numerics != Json(config.numerics))
        add("the numerics of attempt " + std::to_string(attempt.attempt), numerics.dump(),
            "its config says", config.numerics);
    }
  }

  void compare_with(const config::RunColumns& config) {
    const std::string what = "its config says";
    compare("runs.seed", run_.seed, what, config.seed);
    compare("runs.n_parameters", run_.n_parameters, what, config.n_parameters);
    // A later attempt may have been given another end, which the first one's config does not tell.
    if (config.max_steps && run_.attempts.size() == 1 && store::start_of(run_.attempts) == 0)
      compare("runs.max_steps", run_.max_steps, what, *config.max_steps);
  }

  const store::RecordedRun& run_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> contradictions_of(const store::RecordedRun& run) {
  return Contradictions(run).find();
}

std::string unchecked_of(const store::RecordedRun& run) {
  if (run.imported) return "";
  const std::string unchecked = "was not checked against its config, ";
  if (const std::string why = config::why_unreadable(run.config); !why.empty())
    return unchecked + "which this olmo-harness cannot read: " + why;
  if (run.chain_format == kChainFormat) return "";
  return unchecked + "as it has the older format " + std::to_string(run.chain_format);
}

std::string unread_config_of(const store::RecordedRun& run) {
  return run.chain_format == kChainFormat ? unchecked_of(run) : "";
}

}  // namespace olmo::report
