#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/process/process.h"
#include "data/tokenizer/tokenizer.h"
#include "dist/communicator.h"
#include "eval/task_catalog.h"
#include "evaluation/evaluation.h"
#include "evaluation/memory.h"
#include "store/runs/run_db.h"

namespace olmo::evaluation {

/// What the `evaluators` of a config take at most: nobody has looked at their data.
EvaluationMemory memory_of(const config::TrainConfig& config);

/// The `evaluators` of a config, with their data, ready to run while the model trains. They are
/// those of `olmo-harness eval`, under OLMo's in-loop conventions: the same weights give the same
/// bits there.
class Evaluators {
 public:
  /// Token files (`type: lm`) are cut to instances of max_sequence_length. `subset_num_batches`
  /// takes that many batches of device_eval_batch_size continuations or instances, the latter in
  /// the shuffled order of PyTorch's DistributedSampler. Throws Error(kUsage) for a list that is
  /// wrong (config::evaluators_of) or a task that nobody knows. What is not on this machine (data,
  /// tokenizer) is left out and noted.
  Evaluators(const config::TrainConfig& config,
             const std::optional<std::filesystem::path>& tokenizer,
             const std::filesystem::path& data_folder);

  [[nodiscard]] bool empty() const { return plans_.empty(); }
  /// One sentence for each evaluator that was left out, and why.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// What the evaluators take, which run one after the other. Reads their data.
  [[nodiscard]] EvaluationMemory memory() const;

  /// What is evaluated, and for whom.
  struct Occasion {
    dist::Communicator& ranks;
    Digest weights;     ///< models::weights_digest
    std::int64_t step;  ///< after which the weights are these
    store::RunDb* run;  ///< the record; null on ranks that do not record
    const StopSignals& signals;
    RankPasses passes;
  };
  /// Evaluates the weights of `model`. Rows and metrics go to the record as an evaluation of the
  /// running attempt; returned are OLMo's metrics (`eval/downstream/arc_easy_acc`,
  /// `eval/LABEL/CrossEntropyLoss`, …). A signal on any rank ends it early: then nothing is
  /// returned, and the training decides what follows. Ranks return the same.
  std::vector<std::pair<std::string, double>> run(model::Olmo& model, const Occasion& occasion);

 private:
  void add_task(const std::string& label, std::optional<std::int64_t> samples,
                const eval::TaskCatalog& catalog, const std::filesystem::path& data_folder);
  void add_suite(const config::EvaluatorConfig& evaluator, std::optional<std::int64_t> samples,
                 std::uint64_t seed);
  [[nodiscard]] EvaluationPlan empty_plan() const;
  /// Of all plans, for the record: what of a task or suite is left out stands beside its name.
  [[nodiscard]] Json settings() const;

  std::int64_t max_length_;
  std::uint32_t eos_token_id_;
  std::optional<data::Tokenizer> tokenizer_;
  std::vector<EvaluationPlan> plans_;  ///< evaluators with the same limit share one
  std::vector<std::string> notes_;
};

}  // namespace olmo::evaluation
