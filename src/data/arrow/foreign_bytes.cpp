#include "data/arrow/foreign_bytes.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <string_view>

#include "core/text.h"

namespace olmo::data {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSample = 4096;
constexpr std::size_t kLeastUtf8 = 32;
constexpr std::size_t kLeastOther = 1024;
constexpr std::size_t kLeastLetters = 6;  // fewer may be a few ids over and over

struct Format {
  std::string_view magic;
  const char* what;
};

constexpr char kUnpack[] = "; unpack it, and if it holds text, `data tokenize` makes token files";
constexpr std::array<Format, 8> kFormats = {{
    {"\x1f\x8b\x08"sv, "gzip data"},
    {"\x28\xb5\x2f\xfd"sv, "zstd data"},
    {"BZh91AY"sv, "bzip2 data"},
    {"\xfd"
     "7zXZ\0"sv,
     "xz data"},
    {"PK\x03\x04"sv, "a zip archive (NumPy's .npz, PyTorch's .pt)"},
    {"PAR1"sv, "a Parquet file"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    {"SQLite format 3\0"sv, "an SQLite database"},
}};

/// RFC 1952 fixes more than the three bytes, which one file in 17 million has by chance.
bool may_be_gzip(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return bytes.size() >= 18 && (at(3) & 0xE0U) == 0 && (at(8) == 0 || at(8) == 2 || at(8) == 4) &&
         (at(9) <= 13 || at(9) == 255);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && std::string_view("\t\n\r\f\b\x1b").find(c) == std::string_view::npos) ||
         byte == 0x7F;
}

bool is_text(std::string_view sample) {
  if (sample.size() < kLeastUtf8 || std::any_of(sample.begin(), sample.end(), is_control))
    return false;
  std::bitset<256> letters;
  for (const char c : sample) letters.set(static_cast<unsigned char>(c));
  if (letters.count() < kLeastLetters) return false;
  if (sample.size() >= kLeastOther) return true;
  return is_utf8(sample);
}

}  // namespace

std::optional<std::string> foreign_to_token_files(std::span<const std::byte> bytes) {
  const std::string_view sample(reinterpret_cast<const char*>(bytes.data()),
                                std::min(bytes.size(), kSample));
  if (sample.starts_with("\x93NUMPY")) {
    return "begins with NumPy's own .npy header, but OLMo's token files are raw ids without one; "
           "write it again with numpy.load(FILE).tofile(NEW_FILE)";
  }
  for (const auto& [magic, what] : kFormats) {
    if (sample.starts_with(magic) && (magic != kFormats[0].magic || may_be_gzip(sample)))
      return std::string("is ") + what + ", expected token ids" + kUnpack;
  }
  if (is_text(sample))
    return "holds text, expected token ids; `olmo-harness data tokenize` makes a token file of it";
  return std::nullopt;
}

}  // namespace olmo::data
