#include "data/arrow/arrow_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "core/files/input_file.h"
#include "core/text/text.h"
#include "data/arrow/arrow_schema.h"

namespace olmo::data {
namespace {

static_assert(std::endian::native == std::endian::little, "buffers are copied as they are");

// Members of the tables in Arrow's Message.fbs.
enum MessageMember : std::size_t { kMessageHeaderKind = 1, kMessageHeader, kMessageBodyLength };
enum BatchMember : std::size_t { kBatchLength, kBatchNodes, kBatchBuffers, kBatchCompression };
enum HeaderKind : std::uint8_t { kSchema = 1, kDictionaryBatch, kRecordBatch };

constexpr std::uint32_t kContinuation = 0xFFFFFFFF;
constexpr std::size_t kPairBytes = 16;  // FieldNode and Buffer: two int64 each

using Bytes = std::span<const std::byte>;

template <typename T>
T load(Bytes bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

bool bit(Bytes bytes, std::size_t index) {
  return (std::to_integer<unsigned>(bytes[index / 8]) >> (index % 8) & 1U) != 0;
}

/// A column of one record batch; every index below `length` is safe.
struct Column {
  const ArrowField* field = nullptr;
  std::size_t length = 0;
  Bytes validity;  ///< one bit a row; empty: none is null
  Bytes offsets;   ///< of kText and kList, monotone and within the values
  Bytes values;
  std::vector<Column> children;

  [[nodiscard]] std::size_t offset(std::size_t row) const {
    return field->width == 8 ? static_cast<std::size_t>(load<std::int64_t>(offsets, row))
                             : static_cast<std::size_t>(load<std::int32_t>(offsets, row));
  }
};

/// Hands out the nodes and buffers of a record batch in the order of the schema.
class BatchReader {
 public:
  BatchReader(const FlatTable& batch, Bytes body, std::string_view origin)
      : nodes_(batch.structs(kBatchNodes, kPairBytes)),
        buffers_(batch.structs(kBatchBuffers, kPairBytes)),
        body_(body),
        origin_(origin) {}

  Column column(const ArrowField& field, std::size_t length_wanted) {
    Column column{.field = &field,
                  .length = next_length(field),
                  .validity = {},
                  .offsets = {},
                  .values = {},
                  .children = {}};
    if (column.length < length_wanted) {
      refuse(field, "has " + std::to_string(column.length) + " rows, expected " +
                        std::to_string(length_wanted));
    }
    column.validity = next_buffer(field);
    if (!column.validity.empty()) need_bits(field, column.validity, column.length);
    switch (field.layout) {
      case ArrowLayout::kText:
        read_offsets(column);
        column.values = next_buffer(field);
        check_offsets(column, column.values.size());
        break;
      case ArrowLayout::kInt:
      case ArrowLayout::kUint:
      case ArrowLayout::kFloat:
        column.values = next_buffer(field);
        if (column.values.size() / field.width < column.length) refuse(field, "has too few bytes");
        break;
      case ArrowLayout::kBool:
        column.values = next_buffer(field);
        need_bits(field, column.values, column.length);
        break;
      case ArrowLayout::kList:
        read_offsets(column);
        column.children.push_back(this->column(field.children[0], 0));
        check_offsets(column, column.children[0].length);
        break;
      case ArrowLayout::kFixedList: {
        column.children.push_back(this->column(field.children[0], 0));
        const auto size = static_cast<std::size_t>(field.list_size);
        if (column.children[0].length / size < column.length) refuse(field, "has too few values");
        break;
      }
      case ArrowLayout::kStruct:
        for (const auto& child : field.children) {
          column.children.push_back(this->column(child, column.length));
        }
        break;
    }
    return column;
  }

 private:
  std::size_t next_length(const ArrowField& field) {
    if (nodes_.size() < kPairBytes) refuse(field, "is missing from a record batch");
    const auto length = load<std::int64_t>(nodes_, 0);
    nodes_ = nodes_.subspan(kPairBytes);
    if (length < 0) refuse(field, "has a negative number of rows");
    return static_cast<std::size_t>(length);
  }

  Bytes next_buffer(const ArrowField& field) {
    if (buffers_.size() < kPairBytes) refuse(field, "lacks a buffer in a record batch");
    const auto offset = load<std::int64_t>(buffers_, 0);
    const auto length = load<std::int64_t>(buffers_, 1);
    buffers_ = buffers_.subspan(kPairBytes);
    const auto size = static_cast<std::int64_t>(body_.size());
    if (offset < 0 || length < 0 || offset > size || length > size - offset) {
      refuse(field, "has a buffer outside of its record batch (offset " + std::to_string(offset) +
                        ", length " + std::to_string(length) + ", batch " + std::to_string(size) +
                        " bytes)");
    }
    return body_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }

  void need_bits(const ArrowField& field, Bytes bits, std::size_t count) const {
    if (bits.size() < count / 8 + (count % 8 != 0 ? 1 : 0)) refuse(field, "has too few bits");
  }

  void read_offsets(Column& column) {
    column.offsets = next_buffer(*column.field);
    if (column.length == 0) return;
    if (column.offsets.size() / column.field->width <= column.length) {
      refuse(*column.field, "has too few offsets");
    }
  }

  void check_offsets(const Column& column, std::size_t limit) const {
    if (column.length == 0) return;
    std::size_t before = 0;
    for (std::size_t row = 0; row <= column.length; ++row) {
      const std::size_t at = column.offset(row);
      if (at < before || at > limit) {
        refuse(*column.field, "has the offset " + std::to_string(at) + " at row " +
                                  std::to_string(row) + ", expected " + std::to_string(before) +
                                  " to " + std::to_string(limit));
      }
      before = at;
    }
  }

  [[noreturn]] void refuse(const ArrowField& field, const std::string& what) const {
    refuse_arrow(origin_, "is damaged: column `" + field.name + "` " + what);
  }

  Bytes nodes_, buffers_, body_;
  std::string_view origin_;
};

template <typename Signed>
Json integer_at(const Column& column, std::size_t row) {
  if (column.field->layout == ArrowLayout::kInt) return load<Signed>(column.values, row);
  return load<std::make_unsigned_t<Signed>>(column.values, row);
}

Json number_at(const Column& column, std::size_t row) {
  switch (column.field->width) {
    case 1:
      return integer_at<std::int8_t>(column, row);
    case 2:
      return integer_at<std::int16_t>(column, row);
    case 4:
      return integer_at<std::int32_t>(column, row);
    default:
      return integer_at<std::int64_t>(column, row);
  }
}

class ValueReader {
 public:
  explicit ValueReader(std::string_view origin) : origin_(origin) {}

  [[nodiscard]] Json value(const Column& column, std::size_t row) const {
    if (!column.validity.empty() && !bit(column.validity, row)) return nullptr;
    switch (column.field->layout) {
      case ArrowLayout::kText:
        return text(column, row);
      case ArrowLayout::kInt:
      case ArrowLayout::kUint:
        return number_at(column, row);
      case ArrowLayout::kFloat:
        return column.field->width == 4 ? Json(load<float>(column.values, row))
                                        : Json(load<double>(column.values, row));
      case ArrowLayout::kBool:
        return bit(column.values, row);
      case ArrowLayout::kList:
        return list(column.children[0], column.offset(row), column.offset(row + 1));
      case ArrowLayout::kFixedList: {
        const auto size = static_cast<std::size_t>(column.field->list_size);
        return list(column.children[0], row * size, (row + 1) * size);
      }
      case ArrowLayout::kStruct:
        return object(column.children, row);
    }
    return nullptr;
  }

  [[nodiscard]] Json object(const std::vector<Column>& columns, std::size_t row) const {
    Json object = Json::object();
    for (const auto& column : columns) object.emplace(column.field->name, value(column, row));
    return object;
  }

 private:
  [[nodiscard]] Json list(const Column& values, std::size_t begin, std::size_t end) const {
    Json list = Json::array();
    for (std::size_t i = begin; i < end; ++i) list.push_back(value(values, i));
    return list;
  }

  [[nodiscard]] Json text(const Column& column, std::size_t row) const {
    const std::size_t begin = column.offset(row);
    const std::string_view text(reinterpret_cast<const char*>(column.values.data()) + begin,
                                column.offset(row + 1) - begin);
    if (!is_utf8(text)) {
      refuse_arrow(origin_, "column `" + column.field->name + "` has text that is not UTF-8");
    }
    return std::string(text);
  }

  std::string_view origin_;
};

/// A message and the body that follows it.
struct Message {
  FlatTable table;
  Bytes body;
};

class StreamReader {
 public:
  StreamReader(Bytes bytes, std::string_view origin)
      : rest_(bytes), size_(bytes.size()), origin_(origin) {}

  /// Nothing at the end of the stream, which Arrow marks.
  std::optional<Message> next() {
    std::uint32_t size = word();
    if (size == kContinuation) size = word();  // before Arrow 0.15 the size stood alone
    if (size == 0) return std::nullopt;
    const FlatTable table(take(size, "the metadata of a message"), origin_);
    const auto body = table.scalar<std::int64_t>(kMessageBodyLength, 0);
    if (body < 0) refuse("is damaged: a message has a body of negative length");
    return Message{table, take(static_cast<std::size_t>(body), "the body of a message")};
  }

  [[noreturn]] void refuse(const std::string& what) const { refuse_arrow(origin_, what); }

 private:
  std::uint32_t word() { return load<std::uint32_t>(take(4, "the length of a message"), 0); }

  Bytes take(std::size_t count, const char* what) {
    if (count > rest_.size()) {
      refuse("is not a whole Arrow stream: " + std::string(what) + " at byte " +
             std::to_string(size_ - rest_.size()) + " takes " + std::to_string(count) +
             " bytes, the file has " + std::to_string(rest_.size()) + " left");
    }
    const Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  Bytes rest_;
  std::size_t size_;
  std::string_view origin_;
};

FlatTable header_of(const Message& message, const StreamReader& stream) {
  const auto header = message.table.table(kMessageHeader);
  if (!header) stream.refuse("is damaged: a message has no header");
  return *header;
}

std::vector<ArrowField> read_schema(StreamReader& stream, std::string_view origin) {
  const auto message = stream.next();
  if (!message || message->table.scalar<std::uint8_t>(kMessageHeaderKind, 0) != kSchema) {
    stream.refuse("does not begin with the schema of an Arrow stream");
  }
  return read_arrow_schema(header_of(*message, stream), origin);
}

void check_columns(const std::vector<ArrowField>& schema, const std::vector<std::string>& columns,
                   const StreamReader& stream) {
  for (const auto& name : columns) {
    const auto has_name = [&](const ArrowField& field) { return field.name == name; };
    if (std::none_of(schema.begin(), schema.end(), has_name)) {
      stream.refuse("has no column `" + name + "`");
    }
  }
}

void append_batch(const FlatTable& batch, Bytes body, const std::vector<ArrowField>& schema,
                  const std::vector<std::string>& wanted, std::string_view origin,
                  std::vector<Json>& rows) {
  const auto length = batch.scalar<std::int64_t>(kBatchLength, 0);
  if (length < 0) refuse_arrow(origin, "is damaged: a record batch has a negative length");
  BatchReader reader(batch, body, origin);
  std::vector<Column> columns;
  for (const auto& field : schema) {
    Column column = reader.column(field, static_cast<std::size_t>(length));
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), field.name) != wanted.end()) {
      columns.push_back(std::move(column));
    }
  }
  const ValueReader values(origin);
  for (std::size_t row = 0; row < static_cast<std::size_t>(length); ++row) {
    rows.push_back(values.object(columns, row));
  }
}

}  // namespace

std::vector<Json> read_arrow_stream(const std::filesystem::path& path,
                                    const std::vector<std::string>& columns) {
  const std::string file = read_file(path);  // no map: it may be cut while it is read
  const std::string origin = path.string();
  StreamReader stream(std::as_bytes(std::span(file)), origin);
  const auto schema = read_schema(stream, origin);
  check_columns(schema, columns, stream);
  std::vector<Json> rows;
  while (const auto message = stream.next()) {
    const auto kind = message->table.scalar<std::uint8_t>(kMessageHeaderKind, 0);
    if (kind == kDictionaryBatch) stream.refuse("has dictionaries, which are not supported");
    if (kind != kRecordBatch) {
      stream.refuse("is damaged: a message is of kind " + std::to_string(kind) +
                    ", expected a record batch");
    }
    const FlatTable batch = header_of(*message, stream);
    if (batch.table(kBatchCompression)) {
      stream.refuse("is compressed, which is not supported: write it without compression");
    }
    append_batch(batch, message->body, schema, columns, origin, rows);
  }
  return rows;
}

}  // namespace olmo::data
