#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/text/text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace olmo::data {
namespace {

/// With more different beginnings than this, comparing with each is slower than a table of first
/// bytes.
constexpr std::size_t kMaxBeginnings = 8;

#if defined(__SSE2__)
/// Bit i is set where the bytes at p + i, p + i + 1 begin a token, for 16 bytes; 17 are read.
std::uint32_t beginnings_at(const char* p, const std::vector<std::array<char, 2>>& beginnings) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 1));
  __m128i found = _mm_setzero_si128();
  for (const auto& pair : beginnings) {
    found = _mm_or_si128(found, _mm_and_si128(_mm_cmpeq_epi8(first, _mm_set1_epi8(pair[0])),
                                              _mm_cmpeq_epi8(second, _mm_set1_epi8(pair[1]))));
  }
  return static_cast<std::uint32_t>(_mm_movemask_epi8(found));
}
#endif

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(const UnicodeTable& table, std::vector<AddedToken> tokens)
    : table_(&table), tokens_(std::move(tokens)), nodes_(1) {
  bool has_short = false;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    OLMO_CHECK(!content.empty());
    starts_[static_cast<unsigned char>(content[0])] = true;
    if (content.size() == 1) {
      has_short = true;
    } else if (const std::array<char, 2> pair = {content[0], content[1]};
               std::find(beginnings_.begin(), beginnings_.end(), pair) == beginnings_.end()) {
      beginnings_.push_back(pair);
    }
    std::uint32_t node = 0;
    for (const char c : content) {
      const auto& children = nodes_[node].children;
      const auto child = std::find_if(children.begin(), children.end(),
                                      [c](const auto& entry) { return entry.first == c; });
      if (child != children.end()) {
        node = child->second;
        continue;
      }
      const auto added = static_cast<std::uint32_t>(nodes_.size());
      nodes_[node].children.emplace_back(c, added);
      nodes_.emplace_back();
      node = added;
    }
    OLMO_CHECK(nodes_[node].token < 0);
    nodes_[node].token = static_cast<std::int64_t>(i);
  }
  if (has_short || beginnings_.size() > kMaxBeginnings) beginnings_.clear();
}

AddedTokenMatcher::Match AddedTokenMatcher::match_at(std::string_view text, std::size_t at) const {
  Match match;
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto& children = nodes_[node].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const auto& entry) { return entry.first == text[i]; });
    if (child == children.end()) break;
    node = child->second;
    if (nodes_[node].token >= 0) match = {at, i + 1, static_cast<std::size_t>(nodes_[node].token)};
  }
  return match;
}

AddedTokenMatcher::Match AddedTokenMatcher::find(std::string_view text, std::size_t from) const {
  std::size_t at = from;
#if defined(__SSE2__)
  if (!beginnings_.empty()) {
    for (; at + 17 <= text.size(); at += 16) {
      for (std::uint32_t bits = beginnings_at(text.data() + at, beginnings_); bits != 0;
           bits &= bits - 1) {
        const Match match = match_at(text, at + static_cast<std::size_t>(std::countr_zero(bits)));
        if (match.start != std::string_view::npos) return match;
      }
    }
  }
#endif
  for (; at < text.size(); ++at) {
    if (!starts_[static_cast<unsigned char>(text[at])]) continue;
    const Match match = match_at(text, at);
    if (match.start != std::string_view::npos) return match;
  }
  return {};
}

bool AddedTokenMatcher::is_inside_word(std::string_view text, const Match& match) const {
  const auto is_word = [&](CodePoint point) { return (table_->flags(point.code) & kWord) != 0; };
  return (match.start > 0 && is_word(last_code_point(text.substr(0, match.start)))) ||
         (match.end < text.size() && is_word(decode_valid_utf8(text.data() + match.end)));
}

void AddedTokenMatcher::split(std::string_view text, std::vector<Part>& parts) const {
  std::size_t done = 0;
  const auto is_space = [&](CodePoint point) { return table_->split_class(point.code) == kSpace; };
  for (std::size_t from = 0; !tokens_.empty();) {
    const Match match = find(text, from);
    if (match.start == std::string_view::npos) break;
    from = match.end;
    const AddedToken& token = tokens_[match.token];
    if (token.single_word && is_inside_word(text, match)) continue;
    std::size_t start = match.start;
    std::size_t end = match.end;
    if (token.lstrip) {
      while (start > done) {
        const CodePoint point = last_code_point(text.substr(0, start));
        if (!is_space(point)) break;
        start -= point.size;
      }
      start = std::max(start, done);
    }
    if (token.rstrip) {
      while (end < text.size() && is_space(decode_valid_utf8(text.data() + end))) {
        end += decode_valid_utf8(text.data() + end).size;
      }
    }
    if (start >= end) continue;  // the token before took it for white space
    if (start > done) parts.push_back({text.substr(done, start - done), false, 0});
    parts.push_back({{}, true, token.id});
    done = end;  // as in the library, a match may begin before this if the token before took its
                 // white space
  }
  if (done < text.size()) parts.push_back({text.substr(done), false, 0});
}

}  // namespace olmo::data
