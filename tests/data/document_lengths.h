#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "support/catch.h"

namespace olmo::test {

/// What OLMo's get_document_lengths returns, from where find_document_starts says that documents
/// begin.
inline std::vector<std::int64_t> document_lengths(const std::vector<std::int64_t>& ids,
                                                  std::int64_t eos_token_id) {
  std::vector<std::int32_t> starts(ids.size(), -1);
  data::find_document_starts(ids, eos_token_id, starts);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 0 || starts[i] != starts[i - 1]) {
      CHECK(starts[i] == static_cast<std::int32_t>(i));
      lengths.push_back(0);
    }
    ++lengths.back();
  }
  return lengths;
}

}  // namespace olmo::test
