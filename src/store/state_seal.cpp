#include "store/state_seal.h"

#include <algorithm>
#include <tuple>

namespace olmo::store {

Digest seal_of(std::vector<StateHash> hashes, const Digest& chain) {
  std::sort(hashes.begin(), hashes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.part, a.name) < std::tie(b.part, b.name);
  });
  Sha256 seal;
  seal.update(chain.bytes.data(), chain.bytes.size());
  for (const auto& hash : hashes) {
    for (const std::string* field : {&hash.part, &hash.name, &hash.sha256})
      seal.update_u64(field->size()).update(*field);
  }
  return seal.finish();
}

}  // namespace olmo::store
