#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/files/json.h"
#include "core/process/terminal.h"
#include "data/documents/json_path.h"
#include "data/documents/lines.h"

namespace olmo::data {

/// Spans of the text that are replaced.
struct SpanReplacement {
  JsonPath span;                    ///< leads to a list of [begin, end, score]
  std::optional<double> min_score;  ///< spans below it stay
  std::optional<double> max_score;  ///< spans at or above it stay
  std::string replacement = {};     ///< as Span::replacement
};

/// Documents that are taken together, and what becomes of them.
struct MixStream {
  std::string name;
  std::vector<std::string> documents;   ///< files and folders; `*` stands for a part of a name
  std::vector<std::string> attributes;  ///< names (data/documents/attributes.h)
  std::vector<JsonPath> include;        ///< a document must match one of them, if there are any
  std::vector<JsonPath> exclude;        ///< and none of these
  std::vector<SpanReplacement> span_replacement;
  std::filesystem::path output;
  std::uint64_t max_size_in_bytes = 2ULL << 30;  ///< of the inputs of one output
  std::uint64_t min_text_length = 0;  ///< bytes of UTF-8, without white space at the ends
  std::vector<std::string> discard_fields;
  std::string ending = ".gz";  ///< of the outputs, behind ".jsonl"
};

struct MixOptions {
  std::vector<MixStream> streams;
  bool shuffle = true;  ///< Dolma's word: inputs are put together; false: one output for each
  BadLinePolicy on_bad_line = BadLinePolicy::kStop;
  int threads = 1;
  bool overwrite = false;
  OnProgress on_progress = {};
};

/// An output and what it is made of.
struct MixShard {
  std::filesystem::path output;
  std::vector<std::filesystem::path> inputs;
};

struct MixReport {
  struct Stream {
    std::string name;
    std::uint64_t documents = 0;
    std::uint64_t filtered = 0;    ///< left out by `include` and `exclude`
    std::uint64_t too_short = 0;   ///< left out by `min_text_length`
    std::uint64_t text_bytes = 0;  ///< of what was written
    std::uint64_t replaced_spans = 0;
    std::vector<MixShard> shards;

    [[nodiscard]] std::uint64_t written() const noexcept {
      return documents - filtered - too_short;
    }
  };
  std::vector<Stream> streams;
  BadLines bad_lines{BadLinePolicy::kStop};
};

/// Which file goes where: inputs by name, put together until their sizes would exceed
/// max_size_in_bytes, into OUTPUT/NAME-0000.jsonl.gz and so on; or, without `shuffle`, each into
/// OUTPUT/documents/ and its path below the last folder `documents`. Throws Error(kInput) for
/// patterns that no file matches, Error(kUsage) for outputs that meet.
std::vector<MixShard> plan_mix(const MixStream& stream, bool shuffle);

/// Dolma's mixer: of the documents of each stream those that its filters take, with spans of their
/// text replaced. The attributes of a document are merged into its `attributes` before filters see
/// it, the later ones over the earlier; each output document has the place that it is from as
/// `metadata.provenance`, "FILE:LINE". Where we differ on purpose from Dolma's toolkit 1.2:
///  - attributes that are missing, or end before their documents, stop the run (Dolma goes on
///    without them);
///  - numbers are equal by value (there 1 is not 1.0, so that `>= 1.0` does not find the scores of
///    its own deduper), and spans without characters are none (data/documents/attributes.h);
///  - outputs are all named .jsonl, have the order of the inputs, and appear when all are written.
///
/// Threads change nothing. Throws Error(kInput) for bad inputs, Error(kUsage) for an output that
/// exists, Error(kFailure) if writing fails.
MixReport mix(const MixOptions& options);

/// The report as the command prints it with --json.
Json to_json(const MixReport& report);

}  // namespace olmo::data
