// Whether a recorded training is what it says: its hash chain, its seals, and the order of its
// steps. Nothing of this computes a training; an audit does (audit/audit.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "store/run_records.h"

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
  /// another run. Then its first link cannot be checked: what came before it lies in that
  /// checkpoint. (A row up to `first` says that the steps were counted anew.)
  StepVerifier(const RunRecord& run, std::int64_t first);

  /// Adds to `findings` what is wrong with the row: a link that does not follow from the one before
  /// and the row's own fields, steps that are missing or come twice, tokens that do not grow, a
  /// loss that is not finite. After a wrong link the recorded one is followed on.
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

/// States whose seal does not fit their hashes. `links` holds the chain after each sealed step, as
/// far as the record has it.
void verify_seals(const std::map<std::int64_t, std::string>& seals,
                  const std::map<std::int64_t, std::vector<StateHash>>& hashes,
                  const std::map<std::int64_t, Digest>& links, std::vector<Finding>& findings);

/// SHA-256 over the hash chain and, in the order of their parts and names, over every part, name
/// and hash, so that none of them can be altered alone.
Digest seal_of(std::vector<StateHash> hashes, const Digest& chain);

}  // namespace olmo::store
