#include "data/tokenizer/unicode_table.h"

#include <map>
#include <string>

namespace olmo::data {

UnicodeTable::UnicodeTable() {
  constexpr std::uint32_t kCodes = 0x110000;
  const auto runs = unicode_runs();
  std::map<std::string, std::uint16_t> known;
  std::string block(1U << kShift, '\0');
  std::size_t run = 0;
  for (std::uint32_t code = 0; code < kCodes; ++code) {
    while (run + 1 < runs.size() && runs[run + 1] >> 8 <= code) ++run;
    block[code & kLowMask] = static_cast<char>(runs[run] & 0xFF);
    if ((code & kLowMask) != kLowMask) continue;
    const auto [entry, is_new] = known.try_emplace(block, static_cast<std::uint16_t>(known.size()));
    if (is_new) blocks_.insert(blocks_.end(), block.begin(), block.end());
    block_of_.push_back(entry->second);
  }
}

}  // namespace olmo::data
