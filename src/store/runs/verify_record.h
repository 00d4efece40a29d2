// Whether a recorded training is what it says: its hash chain, its seals, and the order of its
// steps. Nothing of this computes a training; an audit does (audit/audit.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "store/runs/run_records.h"

namespace olmo::store {

/// Something that the record or a file of the run says, and that is not so.
struct Finding {
  std::int64_t step = 0;
  std::string quantity;  ///< a column of steps, PART/TENSOR of a state, state_hashes or checkpoint
  std::string sentence;  ///< what was recorded, what was found; begins with the step
};

/// Nothing for a text that is no digest.
std::optional<Digest> digest_of(const std::string& hex);

/// Follows the steps of a run, in order, from one link of the chain to the next.
class StepVerifier {
 public:
  /// `first`: the step after which the run itself began, 0 unless it took over the checkpoint of
  /// another run. Then `link`, the chain in that checkpoint, is what its first step follows from;
  /// without it the first link cannot be checked. (A row up to `first` says that the steps were
  /// counted anew.)
  StepVerifier(const RunRecord& run, std::int64_t first, std::optional<Digest> link = {});

  /// Adds to `findings` what is wrong with the row: a link that does not follow from the one before
  /// and the row's own fields, steps that are missing or come twice, tokens that do not grow, a
  /// loss that is not finite, or is not the sum of its terms. After a wrong link the recorded one
  /// is followed on.
  void add(const StepRecord& row, std::vector<Finding>& findings);

  /// The last step that was added, or the one before the first.
  [[nodiscard]] std::int64_t step() const { return step_; }
  /// The recorded link after it; nothing if it is no digest, or not known.
  [[nodiscard]] const std::optional<Digest>& link() const { return link_; }

 private:
  [[nodiscard]] bool follows(const StepRecord& row) const;

  std::int64_t format_;
  std::optional<Digest> start_;  ///< the link before step 1
  bool begun_ = false;
  std::int64_t step_;
  std::int64_t tokens_ = 0;
  std::optional<Digest> link_;
};

/// What is wrong with a loss or the order of the rows of an imported run: its steps may have gaps.
void verify_imported(const ImportedStepRecord& row, const ImportedStepRecord* before,
                     std::vector<Finding>& findings);

/// The hashes of states, and what vouches for them.
struct SealedStates {
  const std::map<std::int64_t, std::vector<StateHash>>& hashes;  ///< by step
  const std::map<std::int64_t, std::string>& seals;
  std::map<std::int64_t, Digest> links;  ///< the chain after each of these steps, where it is known
  bool all_sealed = false;               ///< the record is no older one, whose states have no seals
  /// The step after which the run began. Where that is not 0, and its link is not known, the seal
  /// of that state cannot be checked.
  std::int64_t first = 0;
};

/// States whose seal does not fit their hashes, or is missing.
void verify_seals(const SealedStates& states, std::vector<Finding>& findings);

/// What is wrong if a run that ended after its last step lacks the last ones.
void verify_end(const RunRecord& run, std::int64_t last, std::vector<Finding>& findings);

/// Calls `visit(column, member)` for each value of a step that the training decides, in the order
/// in which it computes them; hashes are left out, and times, which it does not decide.
template <class Visit>
void visit_computed_values(const Visit& visit) {
  visit("epoch", &StepRecord::epoch);
  visit("tokens", &StepRecord::tokens);
  visit("masked_instances", &StepRecord::masked_instances);
  visit("ce_loss", &StepRecord::ce_loss);
  visit("ce_loss_per_label", &StepRecord::ce_loss_per_label);
  visit("z_loss", &StepRecord::z_loss);
  visit("loss", &StepRecord::loss);
  visit("grad_norm", &StepRecord::grad_norm);
  visit("max_grad_norm", &StepRecord::max_grad_norm);
  visit("clipping_rate", &StepRecord::clipping_rate);
  visit("lr", &StepRecord::lr);
  visit("param_norm", &StepRecord::param_norm);
}

/// Over the bits of a step's computed values but max_grad_norm, a setting that may change none of
/// the others: equal for the same bits, and hardly ever for others.
std::uint64_t digest_of_values(const StepRecord& row);

/// The first column of those that digest_of_values is over whose bits differ; empty: none.
std::string first_value_that_differs(const StepRecord& a, const StepRecord& b);

/// SHA-256 over the hash chain and, in the order of their parts and names, over every part, name
/// and hash, so that none of them can be altered alone.
Digest seal_of(std::vector<StateHash> hashes, const Digest& chain);

}  // namespace olmo::store
