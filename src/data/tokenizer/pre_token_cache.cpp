#include "data/tokenizer/pre_token_cache.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

#include "core/error.h"

namespace olmo::data {

void PreTokenCache::Release::operator()(Line* lines) const noexcept { std::free(lines); }

PreTokenCache::PreTokenCache() {
  constexpr std::size_t kBytes = kLines * sizeof(Line);
  constexpr std::size_t kHugePage = std::size_t{1} << 21;
  static_assert(kBytes % kHugePage == 0);
  void* memory = std::aligned_alloc(kHugePage, kBytes);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, kBytes,
          MADV_HUGEPAGE);  // advice: look-ups are random, so small pages would miss the TLB
  std::memset(memory, 0, kBytes);
  lines_.reset(static_cast<Line*>(memory));
}

void PreTokenCache::insert(const PreTokenKey& key, std::span<const std::uint32_t> ids) {
  OLMO_CHECK(!ids.empty() && ids.size() <= kMaxIds);
  const std::size_t own = line_of(key);
  Line& line = lines_[lines_[own][1].count == 0 ? own : own ^ 1];
  Entry& entry = line[0].count == 0 ? line[0] : line[1];
  entry = {key.low, key.high, static_cast<std::uint32_t>(ids.size()), {}};
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
}

void LongPreTokenCache::insert(std::string_view bytes, const std::vector<std::uint32_t>& ids) {
  if (ids_.size() >= kMaxEntries) ids_.clear();
  ids_.emplace(bytes, ids);
}

}  // namespace olmo::data
