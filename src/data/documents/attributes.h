// Dolma's attributes: what is known of the documents of a file, in a file of the same lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olmo::data {

/// A path cut at the last folder `documents`, which is Dolma's layout.
struct DolmaPath {
  std::filesystem::path above;  ///< without the folder
  std::filesystem::path below;
};

/// Nothing if a path has no such folder, or nothing below it.
std::optional<DolmaPath> split_at_documents(const std::filesystem::path& path);

/// Where the attributes NAME of a file of documents lie: the last folder `documents` of its path is
/// `attributes/NAME` instead, as Dolma's toolkit has it. Throws Error(kUsage) if there is no such
/// folder in the path, or if the name would lead out of its folder.
std::filesystem::path attribute_file(const std::filesystem::path& documents,
                                     const std::string& name);

/// Characters [begin, end) of a text, that is code points.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string replacement = {};  ///< `{}` in it stands for the text of the span
};

/// `text` (UTF-8) with the spans replaced. Of spans that overlap, the one that begins first counts,
/// then the one that is listed first; the others are left out. A span without characters is none,
/// and one that ends after the text ends with it. As Dolma's mixer does it (src/shard.rs), but that
/// a span without characters takes a character there.
std::string replace_spans(std::string_view text, std::vector<Span> spans);

/// Code points of a UTF-8 text.
std::uint64_t count_characters(std::string_view text);

}  // namespace olmo::data
