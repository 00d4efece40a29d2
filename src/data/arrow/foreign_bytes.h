#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace olmo::data {

/// What the bytes of a file are, if they can hardly be token ids: text, or another program's format
/// by its first bytes; a sentence's end with what to do. Token files have no header, so only strong
/// evidence counts. Text: 32 bytes or more of UTF-8, or 1024 of anything else, in which no control
/// character stands. A file of ids has those: the high byte of every id below 8192 is one, and of
/// ids drawn evenly from 50,000 words a quarter has one somewhere.
std::optional<std::string> foreign_to_token_files(std::span<const std::byte> bytes);

}  // namespace olmo::data
