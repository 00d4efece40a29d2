#include "data/arrow/arrow_schema.h"

#include <optional>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::data {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxFields =
    4096;  // offsets may share tables: a tree may be larger than its message

// Members of the tables in Arrow's Schema.fbs.
enum SchemaMember : std::size_t { kSchemaEndianness, kSchemaFields };
enum FieldMember : std::size_t {
  kFieldName,
  kFieldTypeKind = 2,
  kFieldType,
  kFieldDictionary,
  kFieldChildren
};

// The union Type.
constexpr std::string_view kTypeNames =
    "none null int float binary utf8 bool decimal date time timestamp interval list struct union "
    "fixed_size_binary fixed_size_list map duration large_binary large_utf8 large_list "
    "run_end_encoded binary_view utf8_view list_view large_list_view";
enum TypeKind : std::uint8_t {
  kTypeInt = 2,
  kTypeFloat = 3,
  kTypeUtf8 = 5,
  kTypeBool = 6,
  kTypeList = 12,
  kTypeStruct = 13,
  kTypeFixedSizeList = 16,
  kTypeLargeUtf8 = 20,
  kTypeLargeList = 21,
};

class SchemaReader {
 public:
  explicit SchemaReader(std::string_view origin) : origin_(origin) {}

  ArrowField field(const FlatTable& table, const std::string& parent, int depth) {
    ArrowField field;
    field.name = std::string(table.text(kFieldName));
    if (!is_utf8(field.name)) refuse("a column's name is not UTF-8");
    const std::string path = parent.empty() ? field.name : parent + "." + field.name;
    if (depth > kMaxDepth) refuse("column `" + path.substr(0, 200) + "` is nested too deep");
    if (++fields_ > kMaxFields) {
      refuse("has more than " + std::to_string(kMaxFields) + " columns");
    }
    if (table.table(kFieldDictionary)) {
      refuse("column `" + path + "` is dictionary-encoded, which is not supported");
    }
    const std::size_t children = table.size(kFieldChildren);
    for (std::size_t i = 0; i < children; ++i) {
      field.children.push_back(this->field(table.element(kFieldChildren, i), path, depth + 1));
    }
    set_layout(field, table, path);
    return field;
  }

  [[noreturn]] void refuse(const std::string& what) const { refuse_arrow(origin_, what); }

 private:
  void set_layout(ArrowField& field, const FlatTable& table, const std::string& path) const {
    const auto kind = table.scalar<std::uint8_t>(kFieldTypeKind, 0);
    const auto type = table.table(kFieldType);
    if (!type) refuse("column `" + path + "` has no type");
    const bool large = kind == kTypeLargeUtf8 || kind == kTypeLargeList;
    field.width = large ? 8 : 4;
    std::size_t children = 0;
    switch (kind) {
      case kTypeUtf8:
      case kTypeLargeUtf8:
        field.layout = ArrowLayout::kText;
        break;
      case kTypeInt:
        field.layout =
            type->scalar<std::uint8_t>(1, 0) != 0 ? ArrowLayout::kInt : ArrowLayout::kUint;
        field.width = width_of(type->scalar<std::int32_t>(0, 0), path);
        break;
      case kTypeFloat:
        field.layout = ArrowLayout::kFloat;
        field.width = float_width_of(type->scalar<std::int16_t>(0, 0), path);
        break;
      case kTypeBool:
        field.layout = ArrowLayout::kBool;
        break;
      case kTypeList:
      case kTypeLargeList:
        field.layout = ArrowLayout::kList;
        children = 1;
        break;
      case kTypeFixedSizeList:
        field.layout = ArrowLayout::kFixedList;
        field.list_size = type->scalar<std::int32_t>(0, 0);
        if (field.list_size <= 0) refuse("column `" + path + "` has lists of a fixed size below 1");
        children = 1;
        break;
      case kTypeStruct:
        field.layout = ArrowLayout::kStruct;
        if (field.children.empty()) refuse("column `" + path + "` is a struct without fields");
        children = field.children.size();
        break;
      default: {
        const auto names = split_words(kTypeNames);
        refuse("column `" + path + "` has the type " +
               (kind < names.size() ? std::string(names[kind]) : "number " + std::to_string(kind)) +
               ", which is not supported");
      }
    }
    if (field.children.size() != children) {
      refuse("column `" + path + "` should have " + std::to_string(children) +
             " columns below it, has " + std::to_string(field.children.size()));
    }
  }

  std::size_t width_of(std::int32_t bits, const std::string& path) const {
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) {
      refuse("column `" + path + "` has integers of " + std::to_string(bits) + " bits");
    }
    return static_cast<std::size_t>(bits) / 8;
  }

  std::size_t float_width_of(std::int16_t precision, const std::string& path) const {
    if (precision != 1 && precision != 2) {
      refuse("column `" + path + "` has floats that are neither of 32 nor of 64 bits");
    }
    return precision == 1 ? 4 : 8;
  }

  std::string_view origin_;
  std::size_t fields_ = 0;
};

}  // namespace

void refuse_arrow(std::string_view origin, const std::string& what) {
  throw Error(ErrorKind::kInput, std::string(origin) + ": " + what);
}

std::vector<ArrowField> read_arrow_schema(const FlatTable& schema, std::string_view origin) {
  SchemaReader reader(origin);
  if (schema.scalar<std::int16_t>(kSchemaEndianness, 0) != 0) reader.refuse("is big-endian");
  std::vector<ArrowField> fields;
  const std::size_t count = schema.size(kSchemaFields);
  for (std::size_t i = 0; i < count; ++i) {
    fields.push_back(reader.field(schema.element(kSchemaFields, i), "", 1));
  }
  if (fields.empty()) reader.refuse("has no columns");
  return fields;
}

FlatTable::FlatTable(std::span<const std::byte> message, std::string_view origin)
    : message_(message), origin_(origin) {
  open(follow(0));
}

FlatTable FlatTable::sibling(std::size_t at) const {
  FlatTable other = *this;
  other.open(at);
  return other;
}

void FlatTable::open(std::size_t at) {
  at_ = at;
  const auto fields = static_cast<std::int64_t>(at) - read<std::int32_t>(at);
  if (fields < 0) fail();
  fields_ = static_cast<std::size_t>(fields);
  const std::size_t bytes = read<std::uint16_t>(fields_);
  need(fields_, bytes);
  count_ = bytes < 4 ? 0 : (bytes - 4) / 2;
}

void FlatTable::fail() const {
  refuse_arrow(origin_, "its metadata is damaged: an offset leads out of a message of " +
                            std::to_string(message_.size()) + " bytes");
}

// Every offset of the message comes from a file that may be damaged or hostile, so every read
// passes here. Written as a subtraction, for at + bytes could wrap around.
void FlatTable::need(std::size_t at, std::size_t bytes) const {
  if (at > message_.size() || bytes > message_.size() - at) fail();
}

std::optional<std::size_t> FlatTable::place_of(std::size_t field) const {
  if (field >= count_) return std::nullopt;
  const std::size_t offset = read<std::uint16_t>(fields_ + 4 + 2 * field);
  if (offset == 0) return std::nullopt;
  return at_ + offset;
}

std::size_t FlatTable::follow(std::size_t at) const {
  const std::size_t to = at + read<std::uint32_t>(at);
  need(to, 4);
  return to;
}

std::optional<FlatTable> FlatTable::table(std::size_t field) const {
  const auto at = place_of(field);
  if (!at) return std::nullopt;
  return sibling(follow(*at));
}

FlatTable::Vector FlatTable::vector(std::size_t field, std::size_t element_size) const {
  const auto at = place_of(field);
  if (!at) return {};
  const std::size_t begin = follow(*at);
  const std::size_t count = read<std::uint32_t>(begin);
  need(begin + 4, count * element_size);
  return {.begin = begin + 4, .count = count};
}

std::string_view FlatTable::text(std::size_t field) const {
  const Vector bytes = vector(field, 1);
  return {reinterpret_cast<const char*>(message_.data()) + bytes.begin, bytes.count};
}

std::size_t FlatTable::size(std::size_t field) const { return vector(field, 0).count; }

FlatTable FlatTable::element(std::size_t field, std::size_t index) const {
  const Vector offsets = vector(field, 4);
  if (index >= offsets.count) fail();
  return sibling(follow(offsets.begin + 4 * index));
}

std::span<const std::byte> FlatTable::structs(std::size_t field, std::size_t struct_size) const {
  const Vector all = vector(field, struct_size);
  return message_.subspan(all.begin, all.count * struct_size);
}

}  // namespace olmo::data
