// Whether all ranks are about to do the same. A rank with another config, build or data would train
// something else, and the others would add its gradients to theirs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "dist/communicator.h"

namespace olmo::dist {

/// An error that every rank throws at the same place: no rank waits for another, and one of them
/// tells it for all.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// What must be the same on every rank.
struct Fact {
  std::string name;        ///< "config", "build", "token file 3"
  std::string value;       ///< or its digest; of an object in JSON, the keys that differ are named
  std::string place = {};  ///< where the value comes from, which may differ: "a.npy"
};

/// Compares the facts of all ranks. Where one differs from rank 0's, throws AgreedError(kUsage) on
/// every rank, which names ranks, machines and what differs. `host`: the machine of this rank.
/// What travels is a digest; the facts follow only when digests differ.
void require_same(Communicator& ranks, std::span<const Fact> facts, const std::string& host);

/// Ranks as people write them: "rank 3", "ranks 1, 4 to 7 and 9".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace olmo::dist
