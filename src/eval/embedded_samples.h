// The texts of evals/samples, which the binary carries so that the suite `sample` can be evaluated
// from any folder.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace olmo::eval {

struct EmbeddedSample {
  std::string_view path;  ///< below evals/: "samples/perplexity/SOURCE/SPLIT/FILE.jsonl"
  std::string_view text;
};

/// All of them; the build makes the table (embed_definitions.cmake).
std::span<const EmbeddedSample> embedded_samples();

/// A folder in the cache that holds them under their paths; those that are not there, or were
/// altered, are written. Its name has their digest, so that each version finds its own.
std::filesystem::path unpacked_samples();

}  // namespace olmo::eval
