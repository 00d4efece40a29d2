#include "data/tokenizer/bpe.h"

#include <random>
#include <string>

#include "support/catch.h"

namespace {

using olmo::data::Bpe;
using olmo::data::Merge;
using Ids = std::vector<std::uint32_t>;

std::array<std::uint32_t, 256> identity() {
  std::array<std::uint32_t, 256> ids{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) ids[byte] = byte;
  return ids;
}

/// Joins one pair at a time, as the definition says.
Ids merged_by_definition(std::string_view bytes, const std::vector<Merge>& merges) {
  Ids ids(bytes.begin(), bytes.end());
  for (;;) {
    std::size_t best_rank = merges.size();
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left != ids[i] || merges[rank].right != ids[i + 1]) continue;
        best_rank = rank;
        best_at = i;
      }
    }
    if (best_rank == merges.size()) return ids;
    ids[best_at] = merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

}  // namespace

TEST_CASE("pre-tokens of any length are merged as the definition of BPE says", "[data]") {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    std::vector<Merge> merges;
    std::uint32_t next = 256;
    Ids known = {'a', 'b', 'c'};
    for (int i = 0; i < 20; ++i) {
      merges.push_back({known[random() % known.size()], known[random() % known.size()], next});
      known.push_back(next++);
    }
    std::vector<Merge> distinct;  // of a pair listed twice the last place counts
    for (std::size_t i = 0; i < merges.size(); ++i) {
      bool again = false;
      for (std::size_t j = i + 1; j < merges.size(); ++j) {
        again = again || (merges[i].left == merges[j].left && merges[i].right == merges[j].right);
      }
      if (!again) distinct.push_back(merges[i]);
    }
    const Bpe bpe(identity(), merges);
    Bpe::Scratch scratch;
    for (const std::size_t size : {1, 2, 3, 15, 40, 48, 49, 60, 300}) {
      std::string bytes;
      while (bytes.size() < size) bytes.push_back(static_cast<char>('a' + random() % 3));
      bpe.encode(bytes, scratch);
      CHECK(scratch.ids == merged_by_definition(bytes, distinct));
    }
  }
}
