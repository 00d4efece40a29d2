#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace olmo::data {

/// Remembers texts, of evaluation sets say, so that documents which contain them are found. Texts
/// are compared as sequences of words: runs of ASCII letters and digits, in lower case. 64-bit
/// hashes stand for the words; a collision can only find a document too many.
class WordIndex {
 public:
  static constexpr std::size_t kRun =
      13;  ///< words in a row that betray a text (the length GPT-3's authors used)

  void add(std::string_view text);
  /// Call once after the last add().
  void sort();

  /// Whether `text` as a whole is one of the texts.
  [[nodiscard]] bool is_text(std::string_view text) const;
  /// Whether `text` shares kRun consecutive words with one of them.
  [[nodiscard]] bool shares_run(std::string_view text) const;

 private:
  void compact();

  std::vector<std::uint64_t> texts_;
  std::vector<std::uint64_t> runs_;
  std::size_t sorted_runs_ =
      0;  ///< runs that the last compaction left: the next one comes when they have doubled
};

}  // namespace olmo::data
