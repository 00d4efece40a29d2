#include "data/foreign_format.h"

#include <algorithm>
#include <array>

namespace olmo::data {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  ForeignFormat format;
  std::size_t at = 0;
};

constexpr std::array<Magic, 11> kMagics = {{
    {"BZh91AY"sv, {"bzip2 data", true}},
    {"\xfd"
     "7zXZ\0"sv,
     {"xz data", true}},
    {"\x04\x22\x4d\x18"sv, {"LZ4 data", true}},
    {"7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", true}},
    {"PK\x03\x04"sv, {"a zip archive (NumPy's .npz, PyTorch's .pt)", true}},
    {"ustar"sv, {"a tar archive", true}, 257},
    {"PAR1"sv, {"a Parquet file"}},
    {"ARROW1\0\0"sv, {"an Arrow file"}},
    {"Obj\x01"sv, {"an Avro file"}},
    {"\x89HDF\r\n\x1a\n"sv, {"an HDF5 file"}},
    {"SQLite format 3\0"sv, {"an SQLite database"}},
}};

constexpr std::array<Magic, 6> kNoJsonLines = {{
    {"\xff\xff\xff\xff"sv, {"an Arrow stream"}},
    {"ORC"sv, {"an ORC file"}},
    {"\x93NUMPY"sv, {"an array of NumPy's"}},
    {"%PDF-"sv, {"a PDF document"}},
    {"\xff\xfe"sv, {"UTF-16 text"}},
    {"\xfe\xff"sv, {"UTF-16 text"}},
}};

template <typename Magics>
std::optional<ForeignFormat> find(const Magics& magics, std::string_view head) {
  const auto found = std::find_if(magics.begin(), magics.end(), [&](const Magic& magic) {
    return head.size() > magic.at && head.substr(magic.at).starts_with(magic.bytes);
  });
  return found == magics.end() ? std::nullopt : std::optional(found->format);
}

}  // namespace

std::optional<ForeignFormat> foreign_format(std::string_view head) { return find(kMagics, head); }

std::optional<ForeignFormat> foreign_to_json_lines(std::string_view head) {
  const auto format = foreign_format(head);
  return format ? format : find(kNoJsonLines, head);
}

}  // namespace olmo::data
