#include "data/cl100k_pre_tokens.h"

#include <algorithm>

#include "data/utf8.h"

namespace olmo::data {
namespace {

bool is_newline(char c) { return c == '\r' || c == '\n'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

/// The end of the text counts as white space.
Cl100kPreTokenStarts::Step Cl100kPreTokenStarts::step(std::size_t at) const {
  if (at >= text_.size()) return {kSpace, at};
  const CodePoint point = decode_valid_utf8(text_.data() + at);
  return {table_->split_class(point.code), at + point.size};
}

std::size_t Cl100kPreTokenStarts::run(std::size_t at, std::uint8_t kind) const {
  for (Step next = step(at); next.kind == kind && at < text_.size(); next = step(at)) at = next.end;
  return at;
}

std::size_t Cl100kPreTokenStarts::newlines(std::size_t at) const {
  while (at < text_.size() && is_newline(text_[at])) ++at;
  return at;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d) at `at`, where the apostrophe is, or `at`. Of the letters beyond
/// ASCII only the long s folds to one of these.
std::size_t Cl100kPreTokenStarts::contraction_end(std::size_t at) const {
  const std::string_view rest = text_.substr(at + 1, 2);
  const char first = rest.empty() ? '\0' : lower(rest[0]);
  const char second = rest.size() < 2 ? '\0' : lower(rest[1]);
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return second == 'e' ? at + 3 : at;
    case 'l':
      return second == 'l' ? at + 3 : at;
    default:
      return rest == "\xC5\xBF" ? at + 3 : at;
  }
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ at `at`, where white space is: up to the last newline of the run, else
/// the run without its last character, unless that is all or the text ends.
std::size_t Cl100kPreTokenStarts::white_space_end(std::size_t at) const {
  std::size_t after_newline = at;
  std::size_t last = at;
  std::size_t end = at;
  for (Step next = step(at); next.kind == kSpace && end < text_.size(); next = step(end)) {
    last = end;
    end = next.end;
    if (is_newline(text_[last])) after_newline = end;
  }
  if (after_newline > at) return after_newline;
  return end == text_.size() || last == at ? end : last;
}

/// End of the pre-token that begins at `at`.
std::size_t Cl100kPreTokenStarts::end_of(std::size_t at) const {
  const char c = text_[at];
  const Step first = step(at);
  if (first.kind == kLetter) return run(first.end, kLetter);
  if (first.kind == kNumber) {
    const Step second = step(first.end);
    if (second.kind != kNumber) return first.end;
    const Step third = step(second.end);
    return third.kind == kNumber ? third.end : second.end;
  }
  if (c == '\'') {
    if (const std::size_t end = contraction_end(at); end > at) return end;
  }
  const Step second = step(first.end);
  if (second.kind == kLetter && !is_newline(c)) return run(second.end, kLetter);
  if (first.kind == kOther || (c == ' ' && second.kind == kOther))
    return newlines(run(first.end, kOther));
  return white_space_end(at);
}

std::size_t Cl100kPreTokenStarts::next(std::array<std::size_t, kCapacity>& starts,
                                       std::size_t skip) {
  std::size_t count = skip;
  const std::size_t stop = std::min(at_ + kBytes, text_.size());
  for (; at_ < stop; ++count) {
    starts[count] = at_;
    at_ = end_of(at_);
  }
  return count - skip;
}

}  // namespace olmo::data
