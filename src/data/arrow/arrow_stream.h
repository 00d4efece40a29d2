#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/json.h"

namespace olmo::data {

/// The rows of an Arrow IPC stream (https://arrow.apache.org/docs/format/Columnar.html), as Hugging
/// Face's `datasets` writes them, as JSON objects: strings, integers, floats, booleans, lists,
/// structs, null. With `columns`, only those are read.
///
/// Taken: utf8, large_utf8, int and uint of 8 to 64 bits, float, double, bool, list, large_list,
/// fixed_size_list, struct; any number of record batches; little-endian. Every count, offset and
/// length is checked before it is used, as is UTF-8.
///
/// Throws Error(kInput) naming the file and what is wrong: other types, dictionaries, compression,
/// a stream that is truncated or damaged, a column that is not there.
std::vector<Json> read_arrow_stream(const std::filesystem::path& path,
                                    const std::vector<std::string>& columns = {});

}  // namespace olmo::data
