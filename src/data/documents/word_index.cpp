#include "data/documents/word_index.h"

#include <algorithm>

namespace olmo::data {
namespace {

constexpr std::uint64_t kFnvOffset = 14695981039346656037ULL;
constexpr std::uint64_t kFnvPrime = 1099511628211ULL;

/// Lower case of an ASCII letter or digit; 0 for everything else.
char word_character(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '\0';
}

/// FNV-1a of each word.
std::vector<std::uint64_t> words_of(std::string_view text) {
  std::vector<std::uint64_t> words;
  bool inside = false;
  for (const char raw : text) {
    const char c = word_character(raw);
    if (c != '\0') {
      if (!inside) words.push_back(kFnvOffset);
      words.back() = (words.back() ^ static_cast<unsigned char>(c)) * kFnvPrime;
    }
    inside = c != '\0';
  }
  return words;
}

std::uint64_t combine(const std::uint64_t* words, std::size_t count) {
  std::uint64_t hash = kFnvOffset + count;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

void sort_unique(std::vector<std::uint64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

void WordIndex::add(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty()) return;
  texts_.push_back(combine(words.data(), words.size()));
  for (std::size_t i = 0; i + kRun <= words.size(); ++i)
    runs_.push_back(combine(words.data() + i, kRun));
  if (runs_.size() > 2 * sorted_runs_ + (std::size_t{1} << 22)) compact();
}

void WordIndex::compact() {
  sort_unique(runs_);
  sorted_runs_ = runs_.size();
}

void WordIndex::sort() {
  sort_unique(texts_);
  compact();
}

bool WordIndex::is_text(std::string_view text) const {
  const auto words = words_of(text);
  return !words.empty() &&
         std::binary_search(texts_.begin(), texts_.end(), combine(words.data(), words.size()));
}

bool WordIndex::shares_run(std::string_view text) const {
  const auto words = words_of(text);
  for (std::size_t i = 0; i + kRun <= words.size(); ++i) {
    if (std::binary_search(runs_.begin(), runs_.end(), combine(words.data() + i, kRun)))
      return true;
  }
  return false;
}

}  // namespace olmo::data
