#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/hash.h"

namespace olmo::data {

/// How hard to compress: as tools do by default, or three times as fast for a third more bytes.
enum class Effort { kUsual, kLittle };

/// Lines into a file that appears whole or not at all (core/files/output_file.h), compressed as its
/// name says: gzip for .gz, Zstandard for .zst. The same lines give the same bytes, on any number
/// of threads: they are compressed in blocks of 1 MiB, each a gzip member or a frame of its own,
/// as tools that compress in parallel write them; and there is no time stamp.
class LineWriter {
 public:
  /// Throws as OutputFile does, here and below.
  explicit LineWriter(const std::filesystem::path& path, int threads = 1,
                      Effort effort = Effort::kUsual);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// `line` has no newline: one is added.
  void write(std::string_view line);
  /// Writes out, syncs and closes, without taking the name yet. Returns the digest of the file.
  Digest finish();
  /// Takes the name, after finish().
  void publish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace olmo::data
