#include "data/documents/attributes.h"

#include <algorithm>

#include "core/error.h"
#include "data/python_text.h"

namespace olmo::data {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// Walks through a text, forwards only.
class CharacterCursor {
 public:
  explicit CharacterCursor(std::string_view text) : text_(text) {}

  /// The byte at which character `index` begins; the text's end if it has fewer.
  std::size_t byte_of(std::uint64_t index) {
    while (character_ < index && byte_ < text_.size()) {
      do ++byte_;
      while (byte_ < text_.size() && !begins_character(text_[byte_]));
      ++character_;
    }
    return byte_;
  }

 private:
  std::string_view text_;
  std::size_t byte_ = 0;
  std::uint64_t character_ = 0;
};

}  // namespace

std::optional<DolmaPath> split_at_documents(const std::filesystem::path& path) {
  const std::vector<std::filesystem::path> parts(path.begin(), path.end());
  const auto found = std::find(parts.rbegin(), parts.rend(), "documents");
  if (found == parts.rend() || found == parts.rbegin()) return std::nullopt;
  DolmaPath result;
  for (auto part = parts.begin(); part != std::prev(found.base()); ++part) result.above /= *part;
  for (auto part = found.base(); part != parts.end(); ++part) result.below /= *part;
  return result;
}

std::filesystem::path attribute_file(const std::filesystem::path& documents,
                                     const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw Error(ErrorKind::kUsage, "`" + name + "` is no name for attributes: it may have no `/`");
  const auto path = split_at_documents(documents);
  if (!path)
    throw Error(ErrorKind::kUsage,
                documents.string() +
                    ": lies in no folder `documents`, so there is no place for its attributes "
                    "(.../documents/FILE has them in .../attributes/" +
                    name + "/FILE)");
  return path->above / "attributes" / name / path->below;
}

std::string replace_spans(std::string_view text, std::vector<Span> spans) {
  std::ranges::stable_sort(spans, {}, &Span::begin);
  CharacterCursor cursor(text);
  std::string result;
  std::size_t done = 0;       // bytes of `text`
  std::uint64_t covered = 0;  // characters that no further span may have
  for (const Span& span : spans) {
    if (span.begin < covered || span.end <= span.begin) continue;
    const std::size_t begin = cursor.byte_of(span.begin);
    const std::size_t end = cursor.byte_of(span.end);
    if (begin == end) break;  // beyond the text
    result += text.substr(done, begin - done);
    result += replace(span.replacement, "{}", text.substr(begin, end - begin));
    done = end;
    covered = span.end;
  }
  result += text.substr(done);
  return result;
}

std::uint64_t count_characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count_if(text, begins_character));
}

}  // namespace olmo::data
