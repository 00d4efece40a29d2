// The lines of many text files, handed to several threads and back in their order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/files/json.h"
#include "core/files/unfinished_output.h"
#include "core/hash.h"
#include "core/process/terminal.h"
#include "data/text_reader.h"

namespace olmo::data {

/// What to do with a line that gives no document. Either way it is counted and located.
enum class BadLinePolicy { kStop, kSkip };

struct BadLine {
  std::string file;
  std::uint64_t line = 0;
  std::string problem;
};

/// The bad lines of a run: stops at the first, or counts all and keeps the first few.
class BadLines {
 public:
  static constexpr std::size_t kMaxListed = 100;

  explicit BadLines(BadLinePolicy policy) : policy_(policy) {}
  /// Throws Error(kInput) "FILE:LINE: the line PROBLEM; …" unless bad lines are skipped.
  void add(BadLine line);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] const std::vector<BadLine>& first() const noexcept { return first_; }

 private:
  BadLinePolicy policy_;
  std::uint64_t count_ = 0;
  std::vector<BadLine> first_;
};

Json to_json(const BadLines& lines);

/// A text file that was read.
struct SourceFile {
  std::string path;
  std::uint64_t bytes = 0;
  Digest digest;
  Compression compression = Compression::kNone;
  std::uint64_t lines = 0;
};

/// Consecutive lines, possibly of several files. Their memory is used again.
struct LineChunk {
  struct Item {
    Line line;
    std::size_t source = 0;  ///< LineChunkReader::sources()
  };
  std::vector<Item> items;
  std::size_t count = 0;  ///< of items in use
  /// [first, last) of items: the work of one thread at a time.
  std::vector<std::pair<std::size_t, std::size_t>> groups;
  std::uint64_t bytes_read = 0;  ///< of all files, as they lie on disk, when the chunk was full
};

/// Reads files one after the other, a chunk at a time: 8 MiB of lines, or one line if it is longer.
class LineChunkReader {
 public:
  explicit LineChunkReader(std::vector<std::filesystem::path> paths);

  /// The next lines; none at the end. Throws as LineReader does.
  void read(LineChunk& chunk);

  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return bytes_total_; }
  /// The files that were begun; lines and digest are those of the whole file once it was read.
  [[nodiscard]] const std::vector<SourceFile>& sources() const noexcept { return sources_; }

 private:
  bool next(LineChunk::Item& item);

  std::vector<std::filesystem::path> paths_;
  std::unique_ptr<LineReader> reader_;
  std::vector<SourceFile> sources_;
  std::uint64_t bytes_done_ = 0;
  std::uint64_t bytes_total_ = 0;
};

/// Reads all lines, a Chunk at a time by reader.read(). `make(chunk, group, made)` is called for
/// the groups of a chunk by `threads` threads at once, while the next chunk is read; `made` is a
/// Made that was used before. Then `store(chunk, group, made)` is called for each in the order of
/// the lines, and `done(chunk)`. What is thrown ends it: by `make` before anything of its chunk is
/// stored; by reading once the lines before were stored, so that the first fault in the order of
/// the input is named.
template <class Made, class Chunk = LineChunk, class Reader, class Make, class Store, class Done>
void process_lines(Reader& reader, int threads, const Make& make, const Store& store,
                   const Done& done) {
  struct Slot {
    Made made;
    std::exception_ptr failure;
  };
  std::vector<Slot> slots;
  Chunk current, next;
  reader.read(current);
  while (current.count > 0) {
    const auto groups = static_cast<std::int64_t>(current.groups.size());
    if (slots.size() < current.groups.size()) slots.resize(current.groups.size());
    std::exception_ptr read_failure;
    // Reading is the first of the units of work that the threads take.
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (std::int64_t unit = 0; unit <= groups; ++unit) {
      const auto group = static_cast<std::size_t>(unit == 0 ? 0 : unit - 1);
      std::exception_ptr& failure = unit == 0 ? read_failure : slots[group].failure;
      failure = nullptr;
      try {  // an exception may not leave a parallel loop: it is kept and thrown after it
        if (unit == 0) {
          reader.read(next);
        } else {
          make(std::as_const(current), group, slots[group].made);
        }
      } catch (...) {
        failure = std::current_exception();
      }
    }
    for (std::size_t group = 0; group < current.groups.size(); ++group) {
      if (slots[group].failure) std::rethrow_exception(slots[group].failure);
    }
    for (std::size_t group = 0; group < current.groups.size(); ++group)
      store(std::as_const(current), group, slots[group].made);
    if (read_failure) std::rethrow_exception(read_failure);
    done(std::as_const(current));
    end_if_asked();
    std::swap(current, next);
  }
}

/// Whether a line holds nothing but white space.
bool is_blank(const Line& line);

/// A document with all of its fields, or why there is none.
struct ParsedDocument {
  JsonValue document;   ///< an object with a string `text`
  std::string problem;  ///< one phrase; empty if there is a document
};

/// As parse_document(); keys that an object has twice, at any depth, are a problem, too.
ParsedDocument parse_whole_document(const Line& line);

/// Says how much of the files was read, five times a second at most.
class ReadingProgress {
 public:
  /// `verb`: what is done with them, "tokenizing". `reader` must outlive this.
  ReadingProgress(const OnProgress& on_progress, const LineChunkReader& reader, const char* verb)
      : on_progress_(on_progress), reader_(reader), verb_(verb) {}
  /// `make()`: the facts, asked for when they are said; `tokens` as in Progress.
  void tell(const LineChunk& chunk, const std::function<Progress()>& make);

 private:
  const OnProgress& on_progress_;
  const LineChunkReader& reader_;
  const char* verb_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace olmo::data
