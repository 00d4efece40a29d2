#include "store/foreign/tensor_file.h"

#include <algorithm>
#include <array>

#include "core/crc32.h"
#include "core/error.h"
#include "core/text/safe_text.h"

namespace olmo::store {
namespace {

constexpr std::size_t kMostDimensions = 64;

constexpr std::array<TensorDtype, 16> kDtypes = {{
    {"F32", 4, at::kFloat},
    {"BF16", 2, at::kBFloat16},
    {"F16", 2, at::kHalf},
    {"F64", 8, at::kDouble},
    {"I64", 8, at::kLong},
    {"I32", 4, at::kInt},
    {"I16", 2, at::kShort},
    {"I8", 1, at::kChar},
    {"U8", 1, at::kByte},
    {"U16", 2, at::ScalarType::Undefined},
    {"U32", 4, at::ScalarType::Undefined},
    {"U64", 8, at::ScalarType::Undefined},
    {"BOOL", 1, at::ScalarType::Undefined},
    {"F8_E4M3", 1, at::ScalarType::Undefined},
    {"F8_E5M2", 1, at::ScalarType::Undefined},
    {"F8_E8M0", 1, at::ScalarType::Undefined},
}};

}  // namespace

const TensorDtype* find_tensor_dtype(std::string_view word) {
  const auto found = std::ranges::find(kDtypes, word, &TensorDtype::word);
  return found == kDtypes.end() ? nullptr : found;
}

std::size_t TensorEntry::values() const { return bytes / find_tensor_dtype(dtype)->bytes; }

const char* dtype_word(at::ScalarType type) {
  const auto found = std::ranges::find(kDtypes, type, &TensorDtype::type);
  if (found != kDtypes.end() && type != at::ScalarType::Undefined) return found->word;
  throw Error(ErrorKind::kFailure,
              std::string("safetensors: no word for dtype ") + c10::toString(type));
}

std::size_t checked_tensor_bytes(const std::string& where, const TensorDtype& dtype,
                                 std::span<const std::uint64_t> shape) {
  std::uint64_t total = dtype.bytes;
  if (shape.size() > kMostDimensions) throw_damaged(where, "has more than 64 dimensions");
  for (const std::uint64_t size : shape) {
    // Sizes of 0 count as 1, because LibTorch multiplies strides that way.
    if (__builtin_mul_overflow(total, std::max<std::uint64_t>(size, 1), &total) ||
        total > INT64_MAX) {
      throw_damaged(where, "its shape is beyond any memory");
    }
  }
  return std::ranges::count(shape, 0U) > 0 ? 0 : static_cast<std::size_t>(total);
}

std::optional<ShardPlace> shard_place(std::vector<std::int64_t> shape,
                                      std::span<const std::int64_t> offsets,
                                      std::span<const std::int64_t> sizes) {
  if (offsets.size() != shape.size() || sizes.size() != shape.size()) return std::nullopt;
  ShardPlace place;
  bool has_rows = false;  // several, in a dimension before this one
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_within = shape[i] >= 0 && offsets[i] >= 0 && sizes[i] >= 0 &&
                           offsets[i] <= shape[i] && sizes[i] <= shape[i] - offsets[i];
    if (!is_within) return std::nullopt;
    // Between rows that are not whole lie values of other shards.
    if (has_rows && sizes[i] != shape[i]) return std::nullopt;
    has_rows = has_rows || sizes[i] > 1;
    if (__builtin_mul_overflow(place.begin, shape[i], &place.begin) ||
        __builtin_add_overflow(place.begin, offsets[i], &place.begin))
      return std::nullopt;
  }
  place.shape = std::move(shape);
  return place;
}

ShardPlace required_shard_place(const std::string& where, std::vector<std::int64_t> shape,
                                std::span<const std::int64_t> offsets,
                                std::span<const std::int64_t> sizes) {
  if (auto place = shard_place(std::move(shape), offsets, sizes)) return *std::move(place);
  throw Error(ErrorKind::kInput, safe_line(where + ": has a shard that is not some of its rows"));
}

void check_is_beside(const std::string& where, const std::filesystem::path& file) {
  if (file.empty() || file != file.filename() || file == "." || file == "..")
    throw_damaged(where, "expected a file of the same folder, got " + file.string());
}

void throw_damaged(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kDamaged, safe_line(where + ": " + what));
}

at::ScalarType readable_type(const std::string& where, const TensorEntry& entry) {
  const at::ScalarType type = find_tensor_dtype(entry.dtype)->type;
  if (type != at::ScalarType::Undefined) return type;
  throw_damaged(where + ": tensor " + entry.name, "dtype " + entry.dtype + " cannot be read");
}

void TensorFile::set_entries(std::vector<TensorEntry> entries) {
  entries_ = std::move(entries);
  std::ranges::sort(entries_, [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  index_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].shard_of) continue;
    if (!index_.emplace(entries_[i].name, i).second)
      throw_damaged(file_.path().string(), "tensor " + entries_[i].name + " is there twice");
  }
}

const TensorEntry& TensorFile::entry(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) throw_damaged(file_.path().string(), "has no tensor " + name);
  return entries_[found->second];
}

at::Tensor TensorFile::tensor(const std::string& name) const {
  const TensorEntry& entry = this->entry(name);
  at::Tensor tensor = new_tensor(entry.shape, readable_type(map().path().string(), entry));
  read(entry, std::as_writable_bytes(mutable_host_bytes(tensor)));
  return tensor;
}

void TensorFile::read(const TensorEntry& entry, std::span<std::byte> into) const {
  copy_mapped(file_, entry.offset, into);
  file_.check_not_cut();
  TensorCheck check(*this, entry);
  check.update(into);
  check.finish();
}

void TensorCheck::update(std::span<const std::byte> bytes) {
  if (entry_.crc32) crc32_ = crc32_after(crc32_, bytes);
}

void TensorCheck::finish() const {
  if (entry_.crc32.value_or(crc32_) == crc32_) return;
  throw_damaged(file_.map().path().string() + ": tensor " + entry_.name,
                "its bytes do not have the checksum that the file says");
}

}  // namespace olmo::store
