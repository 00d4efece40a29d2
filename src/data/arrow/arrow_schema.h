#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/arrow/flatbuffer.h"

namespace olmo::data {

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
