#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "eval/task.h"

namespace olmo::eval {

/// Reads and renders the instances, the first `limit` of them. Throws Error(kInput) naming the
/// file, the row and the key of the definition for data that the definition does not fit.
LoadedTask load_task(const Task& task, std::optional<std::int64_t> limit = std::nullopt);

/// The instances of one of AI2's request files (oe-eval's `requests.jsonl.gz`: one object per
/// continuation with `request_type`, `request`.{`context`, `continuation`}, `doc_id`, `idx`,
/// `label`, `native_id`), in the order of their first lines. Lines with a doc_id from 1,000,000 are
/// the unconditional requests of the document 1,000,000 below. A label that is not a number belongs
/// to an instance whose only continuation is the right one.
///
/// Throws Error(kInput) "FILE:LINE: …" for lines that are not of this form, and for documents with
/// gaps among their continuations.
std::vector<Example> read_request_file(const std::filesystem::path& path);

}  // namespace olmo::eval
