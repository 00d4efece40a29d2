#include "data/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/input_file.h"
#include "data/arrow/foreign_bytes.h"
#include "data/sidecar.h"

namespace olmo::data {
namespace {

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

void check_sidecar(const std::filesystem::path& path, TokenDtype dtype, std::uint64_t tokens) {
  const auto sidecar = read_sidecar(path);
  if (!sidecar) return;
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
  check_sidecar(path, dtype, size_);
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

void TokenFile::check_ids_below(std::uint64_t vocab_size) const {
  const auto position = find_id_beyond(vocab_size, 0, size_);
  if (!position) return;
  throw Error(ErrorKind::kInput,
              path().string() + ": token " + std::to_string(*position) + " has id " +
                  std::to_string(at(*position)) + ", expected ids below the vocabulary size " +
                  std::to_string(vocab_size) +
                  "; another tokenizer made the file, or it has another dtype than " +
                  to_string(dtype_));
}

}  // namespace olmo::data
