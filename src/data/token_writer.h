#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/files/output_file.h"
#include "core/hash.h"
#include "data/document_index.h"
#include "data/token_file.h"

namespace olmo::data {

/// Writes a stream of documents into one token file, or into several of `max_tokens` each, each
/// with its document index; a document that overflows a file continues in the next. Nothing carries
/// its final name before publish().
class TokenWriter {
 public:
  struct Part {
    std::filesystem::path path;
    std::uint64_t tokens = 0;
    std::uint64_t documents = 0;  ///< that end in this part
    Digest digest;
    Digest index_digest;  ///< of its document index
  };

  /// `output`: the file itself if it ends in .npy, else a folder for tokens_00000.npy, ...;
  /// `max_tokens` 0: no limit; `threads` compress indices.
  TokenWriter(std::filesystem::path output, TokenDtype dtype, std::uint64_t max_tokens,
              bool overwrite, int threads);

  void append_document(std::span<const std::uint32_t> ids, const DocumentOrigin& origin);
  /// Writes everything out and syncs; afterwards parts() is complete. A stream without documents
  /// gives no part.
  void finish();
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }
  /// Gives the files their names, each after an old sidecar of that name is gone. Throws
  /// Error(kUsage), having changed nothing, if the folder holds a further part of an earlier run.
  void publish();

 private:
  [[nodiscard]] std::filesystem::path part_path(std::size_t part) const;
  void open_next();
  void close_current();
  void append(std::span<const std::uint32_t> ids);

  std::filesystem::path output_;
  TokenDtype dtype_;
  std::uint64_t max_tokens_;
  bool overwrite_;
  int threads_;
  NewFolders folders_;
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<OutputFile>> files_;
  std::vector<std::unique_ptr<DocumentIndexWriter>> indices_;  ///< of the files
  Sha256 hash_;
  std::string encoded_;
};

}  // namespace olmo::data
