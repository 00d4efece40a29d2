// The metadata of an Arrow stream: FlatBuffers tables, and the columns that they describe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olmo::data {

/// Throws Error(kInput) "ORIGIN: what".
[[noreturn]] void refuse_arrow(std::string_view origin, const std::string& what);

/// A table of a FlatBuffers message that nobody vouches for (format:
/// https://flatbuffers.dev/internals). Every offset is checked against the message; members throw
/// Error(kInput) "ORIGIN: …" where one leads out of it. Fields are numbered as in the schema file,
/// from 0. Values live in the message's bytes, which must outlast the table.
class FlatTable {
 public:
  /// The root table of a message.
  FlatTable(std::span<const std::byte> message, std::string_view origin);

  /// The scalar of a field, `absent` where the table leaves it out.
  template <typename T>
  [[nodiscard]] T scalar(std::size_t field, T absent) const {
    const auto at = place_of(field);
    return at ? read<T>(*at) : absent;
  }
  [[nodiscard]] std::optional<FlatTable> table(std::size_t field) const;
  [[nodiscard]] std::string_view text(std::size_t field) const;

  /// Elements of a vector: 0 where it is absent.
  [[nodiscard]] std::size_t size(std::size_t field) const;
  /// Element of a vector of tables.
  [[nodiscard]] FlatTable element(std::size_t field, std::size_t index) const;
  /// Bytes of a vector of structs of `struct_size` bytes each.
  [[nodiscard]] std::span<const std::byte> structs(std::size_t field,
                                                   std::size_t struct_size) const;

 private:
  struct Vector {
    std::size_t begin = 0;
    std::size_t count = 0;
  };

  void open(std::size_t at);
  [[nodiscard]] FlatTable sibling(std::size_t at) const;
  [[noreturn]] void fail() const;
  [[nodiscard]] std::optional<std::size_t> place_of(std::size_t field) const;
  [[nodiscard]] std::size_t follow(std::size_t at) const;
  [[nodiscard]] Vector vector(std::size_t field, std::size_t element_size) const;
  void need(std::size_t at, std::size_t bytes) const;
  template <typename T>
  [[nodiscard]] T read(std::size_t at) const {
    need(at, sizeof(T));
    T value;
    std::memcpy(&value, message_.data() + at, sizeof(T));
    return value;
  }

  std::span<const std::byte> message_;
  std::string_view origin_;
  std::size_t at_ = 0;      ///< of the table
  std::size_t fields_ = 0;  ///< of its list of field places
  std::size_t count_ = 0;   ///< of fields that the list has
};

/// How a column's values are stored.
enum class ArrowLayout { kText, kInt, kUint, kFloat, kBool, kList, kFixedList, kStruct };

/// A column of an Arrow schema, with those below it.
struct ArrowField {
  std::string name;
  ArrowLayout layout = ArrowLayout::kText;
  std::size_t width = 4;       ///< bytes of a number, or of an offset of kText and kList
  std::int64_t list_size = 0;  ///< values of each row of a kFixedList
  std::vector<ArrowField> children;
};

/// The columns of a Schema message. Throws Error(kInput) "ORIGIN: …" naming a column whose type is
/// not taken (see arrow_stream.h), a schema without columns, or one that is big-endian, too deep or
/// too large.
std::vector<ArrowField> read_arrow_schema(const FlatTable& schema, std::string_view origin);

}  // namespace olmo::data
