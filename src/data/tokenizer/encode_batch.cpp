#include <algorithm>

#include <ATen/Parallel.h>

#include "data/tokenizer/tokenizer.h"

namespace olmo::data {

std::vector<std::vector<std::uint32_t>> Tokenizer::encode_batch(
    std::span<const std::string_view> documents, int threads) const {
  std::vector<std::vector<std::uint32_t>> ids(documents.size());
  std::size_t total = 0;
  for (const auto document : documents) total += document.size() + 1;
  // Part p gets the documents whose first byte lies in its share of the text.
  const auto parts = static_cast<std::size_t>(std::max(threads, 1));
  std::vector<std::size_t> first(parts + 1, documents.size());
  std::size_t part = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    while (part < parts && bytes >= total / parts * part + total % parts * part / parts)
      first[part++] = i;
    bytes += documents[i].size() + 1;
  }
  at::parallel_for(
      0, static_cast<std::int64_t>(parts), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
          for (std::size_t i = first[p]; i < first[p + 1]; ++i) encode(documents[i], ids[i]);
        }
      });
  return ids;
}

}  // namespace olmo::data
