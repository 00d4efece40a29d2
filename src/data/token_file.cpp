#include "data/token_file.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "data/foreign_format.h"

namespace olmo::data {
namespace {

constexpr std::size_t kSample = 4096;
constexpr std::size_t kLeastUtf8 = 32;
constexpr std::size_t kLeastOther = 1024;
constexpr std::size_t kLeastLetters = 6;  // fewer may be a few ids over and over

constexpr char kUnpack[] = "; unpack it, and if it holds text, `data tokenize` makes token files";

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

/// What the bytes of a file are, if they can hardly be token ids: text, or another program's format
/// by its first bytes; a sentence's end with what to do. Token files have no header, so only strong
/// evidence counts. Text: 32 bytes or more of UTF-8, or 1024 of anything else, in which no control
/// character stands. A file of ids has those: the high byte of every id below 8192 is one, and of
/// ids drawn evenly from 50,000 words a quarter has one somewhere.
std::optional<std::string> foreign_to_token_files(std::span<const std::byte> bytes) {
  const std::string_view sample(reinterpret_cast<const char*>(bytes.data()),
                                std::min(bytes.size(), kSample));
  if (sample.starts_with("\x93NUMPY")) {
    return "begins with NumPy's own .npy header, but OLMo's token files are raw ids without one; "
           "write it again with numpy.load(FILE).astype(\"uint16\").tofile(NEW_FILE), or "
           "\"uint32\"";
  }
  const auto format = sample.starts_with("\x1f\x8b\x08") && may_be_gzip(sample)
                          ? ForeignFormat{"gzip data"}
                      : sample.starts_with("\x28\xb5\x2f\xfd") ? ForeignFormat{"zstd data"}
                                                               : foreign_format(sample);
  if (format) return "is " + std::string(format->name) + ", expected token ids" + kUnpack;
  if (is_text(sample))
    return "holds text, expected token ids; `olmo-harness data tokenize` makes a token file of it";
  return std::nullopt;
}

constexpr std::size_t kLeastIds = 64;

/// The numbers at every `stride`th place from `first` on.
struct Column {
  std::uint32_t most = 0;
  std::set<std::uint32_t> kinds;
};

template <typename Stored>
Column column(std::span<const std::byte> bytes, std::size_t first, std::size_t stride) {
  Column found;
  std::vector<Stored> numbers(std::min(bytes.size(), kSample) / sizeof(Stored));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Stored));
  for (std::size_t i = first; i < numbers.size(); i += stride) {
    found.most = std::max<std::uint32_t>(found.most, numbers[i]);
    found.kinds.insert(numbers[i]);
  }
  return found;
}

bool varies(const Column& column) {
  constexpr std::size_t kLeastKinds = 16;
  return column.kinds.size() >= kLeastKinds;
}

constexpr char kWriteAgain[] =
    "; write it again, NumPy converts: numpy.fromfile(FILE, ITS_DTYPE)"
    ".astype(\"uint16\").tofile(NEW_FILE), or \"uint32\"";

/// Numbers that take two of `Stored`: one half is 0 throughout, or nearly. `halves` is the most
/// that the high half of an id may be: 1 below 131,072.
template <typename Stored>
std::optional<std::string> wider_dtype(std::span<const std::byte> bytes, std::uint32_t halves) {
  const Column even = column<Stored>(bytes, 0, 2), odd = column<Stored>(bytes, 1, 2);
  const std::string bits = std::to_string(16 * sizeof(Stored));
  if (odd.most <= halves && varies(even)) {
    const bool of_64 = sizeof(Stored) == 4 || column<Stored>(bytes, 2, 4).most == 0;
    if (of_64)
      return "holds ids of 64 bits, as most of every eight bytes are 0" + std::string(kWriteAgain);
    return "holds uint32 ids, as every second number is the high half of one, but it was to be "
           "read as uint16; give data.memmap_dtype=uint32 (or --dtype uint32)";
  }
  if (even.kinds.size() <= 2 && varies(odd))
    return "holds floating-point or big-endian numbers of " + bits +
           " bits, as the first halves of all are alike" + kWriteAgain;
  return std::nullopt;
}

/// Why numbers read as `dtype` are no ids, where the file does not say what they are. All that is
/// known of a vocabulary is that it is small: ids of another dtype read so would be counted, or,
/// where they happen to lie within the vocabulary, trained on.
std::optional<std::string> other_dtype(std::span<const std::byte> bytes, TokenDtype dtype) {
  if (bytes.size() / bytes_per_token(dtype) < 2 * kLeastIds) return std::nullopt;
  if (dtype == TokenDtype::kUint16) {
    // Of a vocabulary of some 50,000 no high byte is above 199, and of a thousand low bytes many
    // are.
    constexpr std::uint32_t kMostHighByte = 199;
    const bool big_endian = bytes.size() >= kLeastOther &&
                            column<std::uint8_t>(bytes, 0, 2).most <= kMostHighByte &&
                            column<std::uint8_t>(bytes, 1, 2).most > kMostHighByte;
    if (big_endian && varies(column<std::uint8_t>(bytes, 1, 2)))
      return "holds big-endian ids, as the first byte of none is above 199" +
             std::string(kWriteAgain);
    return wider_dtype<std::uint16_t>(bytes, 1);
  }
  constexpr std::uint32_t kLargestVocabulary = 1U << 24U;
  const Column all = column<std::uint32_t>(bytes, 0, 1);
  if (all.most >= kLargestVocabulary && varies(all))
    return "holds numbers such as " + std::to_string(all.most) +
           ", which are no ids, when it is read as uint32; give data.memmap_dtype=uint16 (or "
           "--dtype uint16) if it holds those";
  return wider_dtype<std::uint32_t>(bytes, 0);
}

static_assert(std::endian::native == std::endian::little,
              "token files are mapped as they are: little-endian");

/// Calls `use(ids, position)` with the ids [first, first + count), a block at a time. They are
/// copied out of the map, so that a file that is cut while we train is an error and not a signal.
template <typename Stored, typename Use>
void for_each_block(const MappedFile& file, std::uint64_t first, std::uint64_t count,
                    const Use& use) {
  std::array<Stored, 4096> block;
  for (std::uint64_t done = 0; done < count;) {
    const auto length = std::min<std::uint64_t>(block.size(), count - done);
    const auto ids = std::span<Stored>(block).first(length);
    copy_mapped(file, (first + done) * sizeof(Stored), std::as_writable_bytes(ids));
    use(std::span<const Stored>(ids), first + done);
    done += length;
  }
  file.check_not_cut();
}

template <typename Stored, typename Out>
void widen(const MappedFile& file, std::uint64_t first, std::span<Out> out) {
  for_each_block<Stored>(file, first, out.size(), [&](auto ids, std::uint64_t position) {
    std::transform(ids.begin(), ids.end(),
                   out.begin() + static_cast<std::ptrdiff_t>(position - first),
                   [](Stored id) { return static_cast<Out>(id); });
  });
}

template <typename Stored>
std::optional<std::uint64_t> find_beyond(const MappedFile& file, std::uint64_t vocab_size,
                                         std::uint64_t first, std::uint64_t count) {
  std::optional<std::uint64_t> found;
  for_each_block<Stored>(file, first, count, [&](auto ids, std::uint64_t position) {
    // The search for the position runs only in a block whose maximum is too large.
    if (found || *std::max_element(ids.begin(), ids.end()) < vocab_size) return;
    const auto beyond =
        std::find_if(ids.begin(), ids.end(), [&](Stored id) { return id >= vocab_size; });
    found = position + static_cast<std::uint64_t>(beyond - ids.begin());
  });
  return found;
}

/// True if there is a sidecar that states the dtype. Throws Error(kInput) if it states others.
bool check_sidecar(const std::filesystem::path& path, TokenDtype dtype, std::uint64_t tokens) {
  const auto sidecar = read_sidecar(path);
  if (!sidecar) return false;
  if (sidecar->dtype && *sidecar->dtype != dtype) {
    throw Error(ErrorKind::kInput, path.string() + ": its sidecar says dtype " +
                                       to_string(*sidecar->dtype) + ", but it was to be read as " +
                                       to_string(dtype) +
                                       " (`memmap_dtype` of the config, or --dtype)");
  }
  if (sidecar->tokens && *sidecar->tokens != tokens) {
    throw Error(ErrorKind::kInput, path.string() + ": its sidecar says " +
                                       std::to_string(*sidecar->tokens) +
                                       " tokens, but the file holds " + std::to_string(tokens) +
                                       "; it was cut or replaced, tokenize the text again");
  }
  return sidecar->dtype.has_value();
}

std::optional<std::string> text_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return std::nullopt;
  return object[key].get<std::string>();
}

std::optional<std::uint64_t> number_at(const Json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_number_unsigned()) return std::nullopt;
  return object[key].get<std::uint64_t>();
}

/// A key that is there says something: it is refused rather than passed over.
void check_types(const Json& facts, const std::string& path) {
  const auto refuse = [&](const std::string& name, const Json& value, const char* expected) {
    throw Error(ErrorKind::kInput, path + ": `" + name + "` must be " + expected + ", got " +
                                       value.dump(-1, ' ', true).substr(0, 60));
  };
  const auto check_text = [&](const Json& object, const char* key, const std::string& name) {
    if (object.contains(key) && !object[key].is_string() && !object[key].is_null())
      refuse(name, object[key], "text");
  };
  if (facts.contains("dtype") && !facts["dtype"].is_string())
    refuse("dtype", facts["dtype"], "uint16 or uint32");
  for (const char* key : {"tokens", "eos_token_id"}) {
    if (facts.contains(key) && !facts[key].is_number_unsigned() && !facts[key].is_null())
      refuse(key, facts[key], "a whole number from 0");
  }
  if (number_at(facts, "eos_token_id") > std::numeric_limits<std::uint32_t>::max())
    refuse("eos_token_id", facts["eos_token_id"], "below 4294967296");
  for (const char* key : {"sha256", "index_sha256"}) check_text(facts, key, key);
  if (!facts.contains("tokenizer") || facts["tokenizer"].is_null()) return;
  if (!facts["tokenizer"].is_object()) refuse("tokenizer", facts["tokenizer"], "an object");
  for (const char* key : {"path", "sha256"})
    check_text(facts["tokenizer"], key, std::string("tokenizer.") + key);
}

}  // namespace

TokenDtype parse_token_dtype(std::string_view name) {
  if (name == "uint16") return TokenDtype::kUint16;
  if (name == "uint32") return TokenDtype::kUint32;
  throw Error(ErrorKind::kUsage,
              "dtype of token files: expected uint16 or uint32, got '" + std::string(name) + "'");
}

std::string to_string(TokenDtype dtype) {
  return dtype == TokenDtype::kUint16 ? "uint16" : "uint32";
}

std::size_t bytes_per_token(TokenDtype dtype) { return dtype == TokenDtype::kUint16 ? 2 : 4; }

TokenDtype narrowest_dtype(std::size_t vocab_size) {
  return vocab_size <= std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1
             ? TokenDtype::kUint16
             : TokenDtype::kUint32;
}

std::filesystem::path sidecar_path(const std::filesystem::path& token_file) {
  std::filesystem::path path = token_file;
  path += ".json";
  return path;
}

TokenFile::TokenFile(const std::filesystem::path& path, TokenDtype dtype)
    : file_(path), dtype_(dtype) {
  file_.expect_random_access();
  const auto bytes = file_.bytes();
  if (bytes.empty())
    throw Error(ErrorKind::kInput, path.string() + ": is empty, expected token ids");
  if (const auto what = foreign_to_token_files(bytes))
    throw Error(ErrorKind::kInput, path.string() + ": " + *what);
  if (bytes.size() % bytes_per_token(dtype) != 0) {
    throw Error(ErrorKind::kInput, path.string() + ": holds " + std::to_string(bytes.size()) +
                                       " bytes, which is not a whole number of " +
                                       to_string(dtype) + " ids; it was cut, or has another dtype");
  }
  size_ = bytes.size() / bytes_per_token(dtype);
  if (check_sidecar(path, dtype, size_)) return;
  if (const auto what = other_dtype(bytes, dtype))
    throw Error(ErrorKind::kInput, path.string() + ": " + *what);
}

std::uint32_t TokenFile::at(std::uint64_t position) const {
  std::uint32_t id = 0;
  read(position, std::span<std::uint32_t>(&id, 1));
  return id;
}

void TokenFile::read(std::uint64_t first, std::span<std::uint32_t> out) const {
  OLMO_CHECK(first <= size_ && out.size() <= size_ - first);
  dtype_ == TokenDtype::kUint16 ? widen<std::uint16_t>(file_, first, out)
                                : widen<std::uint32_t>(file_, first, out);
}

void TokenFile::read(std::uint64_t first, std::span<std::int64_t> out) const {
  OLMO_CHECK(first <= size_ && out.size() <= size_ - first);
  dtype_ == TokenDtype::kUint16 ? widen<std::uint16_t>(file_, first, out)
                                : widen<std::uint32_t>(file_, first, out);
}

std::optional<std::uint64_t> TokenFile::find_id_beyond(std::uint64_t vocab_size,
                                                       std::uint64_t first,
                                                       std::uint64_t count) const {
  OLMO_CHECK(first <= size_ && count <= size_ - first);
  return dtype_ == TokenDtype::kUint16
             ? find_beyond<std::uint16_t>(file_, vocab_size, first, count)
             : find_beyond<std::uint32_t>(file_, vocab_size, first, count);
}

void TokenFile::prefetch(std::uint64_t first, std::uint64_t count) const {
  OLMO_CHECK(first <= size_ && count <= size_ - first);
  const std::size_t width = bytes_per_token(dtype_);
  file_.prefetch(file_.bytes().subspan(first * width, count * width));
}

void TokenFile::check_ids_below(std::uint64_t vocab_size) const {
  constexpr std::uint64_t kPart = std::uint64_t{1} << 22;
  std::optional<std::uint64_t> position;
  for (std::uint64_t first = 0; first < size_ && !position; first += kPart) {
    const auto count = std::min(kPart, size_ - first);
    prefetch(first, count);
    position = find_id_beyond(vocab_size, first, count);
  }
  if (!position) return;
  throw Error(ErrorKind::kInput,
              path().string() + ": token " + std::to_string(*position) + " has id " +
                  std::to_string(at(*position)) + ", expected ids below the vocabulary size " +
                  std::to_string(vocab_size) +
                  "; another tokenizer made the file, or it has another dtype than " +
                  to_string(dtype_));
}

std::optional<Sidecar> read_sidecar(const std::filesystem::path& token_file) {
  const auto path = sidecar_path(token_file);
  if (!is_there(path)) return std::nullopt;
  const Json facts = read_json_file(path);
  if (!facts.is_object())
    throw Error(ErrorKind::kInput,
                path.string() + ": is not a sidecar of a token file: expected a JSON object");
  check_types(facts, path.string());
  Sidecar sidecar;
  if (const auto dtype = text_at(facts, "dtype")) {
    if (*dtype != "uint16" && *dtype != "uint32")
      throw Error(ErrorKind::kInput,
                  path.string() + ": dtype is '" + *dtype + "', expected uint16 or uint32");
    sidecar.dtype = parse_token_dtype(*dtype);
  }
  sidecar.tokens = number_at(facts, "tokens");
  sidecar.sha256 = text_at(facts, "sha256");
  sidecar.index_sha256 = text_at(facts, "index_sha256");
  if (const auto eos = number_at(facts, "eos_token_id"))
    sidecar.eos_token_id = static_cast<std::uint32_t>(*eos);
  if (facts.contains("tokenizer")) {
    sidecar.tokenizer_path = text_at(facts["tokenizer"], "path");
    sidecar.tokenizer_sha256 = text_at(facts["tokenizer"], "sha256");
  }
  return sidecar;
}

TokenDtype dtype_of(const std::string& stated, const std::optional<Sidecar>& sidecar) {
  if (!stated.empty()) return parse_token_dtype(stated);
  return sidecar && sidecar->dtype ? *sidecar->dtype : TokenDtype::kUint16;
}

}  // namespace olmo::data
