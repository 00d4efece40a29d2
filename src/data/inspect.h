// What `data inspect` shows: the instances of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/files/json.h"
#include "core/hash.h"
#include "data/batch.h"
#include "data/document_index.h"
#include "data/token_file.h"
#include "data/tokenizer/tokenizer.h"

namespace olmo::data {

/// A document's share of an instance: tokens [begin, end) of it.
struct InspectedDocument {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool begins_here = false;              ///< false: it began in an instance before
  bool ends_here = false;                ///< its last token is EOS
  std::string text;                      ///< decoded; empty without a tokenizer
  std::optional<DocumentOrigin> origin;  ///< where a document index lies beside the token file
};

struct InspectedInstance {
  std::uint32_t index = 0;  ///< its number in the data set
  std::string file;
  std::string label;              ///< of `datasets`; else as `file`
  std::uint64_t first_token = 0;  ///< position in the file
  std::uint64_t byte_offset = 0;
  bool masked = false;      ///< by the instance filter
  std::int64_t labels = 0;  ///< tokens that count in the loss
  std::vector<InspectedDocument> documents;
  std::vector<std::int64_t> ids;
};

/// What a training step saw.
struct InspectedStep {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t instances_in_data = 0;
  Digest digest;  ///< the batch hash that training records
  std::vector<InspectedInstance> instances;
};

/// Without `eos_token_id` the document boundaries are unknown and each instance counts as one
/// document. Throws Error(kInput) for a document index that is not the token file's.
InspectedStep inspect_step(BatchSource& source, std::uint64_t step, const Tokenizer* tokenizer,
                           std::optional<std::uint32_t> eos_token_id);

/// As `data inspect --json` prints it.
Json to_json(const InspectedStep& step);
/// As `data inspect` prints it for a person.
std::string to_text(const InspectedStep& step);

}  // namespace olmo::data
