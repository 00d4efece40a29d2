// TensorBoard's event files as rows of a log.
#pragma once

#include "import/log.h"

namespace olmo::import {

/// Whether the bytes begin as an event file does, or are no text and the name is that of one.
bool is_event_file(std::string_view bytes, const std::string& file);

/// A row for all numbers of a step that follow each other: `step`, `wall_time` (Unix seconds of the
/// first) and the numbers by their tags. Its line is the record's number. Returns false if the file
/// ends within a record, as that of a trainer that was killed may. Throws Error(kInput)
/// "FILE:RECORD: …" for a damaged one.
bool read_event_file(std::string_view bytes, const std::string& file, const OnLogRow& on_row);

}  // namespace olmo::import
