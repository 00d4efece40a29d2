#include "data/documents/line_writer.h"

#include "core/files/input_file.h"
#include "data/scratch.h"
#include "data/text_reader.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::test::ScratchFolder;

namespace {

std::vector<std::string> some_lines() {
  std::vector<std::string> lines = {"", "first", std::string(700'000, 'x')};
  for (std::int64_t i = 0; i < 400'000; ++i)
    lines.push_back("line " + std::to_string(i * 7919 % 104729));
  return lines;
}

void write_lines(const std::filesystem::path& path, int threads = 1) {
  LineWriter writer(path, threads);
  for (const std::string& line : some_lines()) writer.write(line);
  writer.finish();
  writer.publish();
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  for (Line line; reader.next(line);) lines.push_back(line.bytes);
  return lines;
}

}  // namespace

TEST_CASE("lines are read as they were written, plain, as gzip and as Zstandard", "[data]") {
  const ScratchFolder folder;
  const struct {
    const char* name;
    Compression compression;
  } kinds[] = {{"a.jsonl", Compression::kNone},
               {"a.jsonl.gz", Compression::kGzip},
               {"a.jsonl.zst", Compression::kZstd}};
  for (const auto& kind : kinds) {
    INFO(kind.name);
    write_lines(folder / kind.name);
    CHECK(ByteSource(folder / kind.name).compression() == kind.compression);
    CHECK(read_lines(folder / kind.name) == some_lines());
  }
}

TEST_CASE("the same lines give the same bytes on any number of threads", "[data]") {
  const ScratchFolder folder;
  for (const std::string ending : {".gz", ".zst"}) {
    write_lines(folder / ("a" + ending));
    write_lines(folder / ("b" + ending), 3);
    CHECK(olmo::read_file(folder / ("a" + ending)) == olmo::read_file(folder / ("b" + ending)));
  }
}

TEST_CASE("a file that was not published does not appear", "[data]") {
  const ScratchFolder folder;
  {
    LineWriter writer(folder / "a.jsonl.gz");
    writer.write("x");
    writer.finish();
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a file of no lines is one that can be read", "[data]") {
  const ScratchFolder folder;
  for (const std::string name : {"a.jsonl", "a.jsonl.gz", "a.jsonl.zst"}) {
    LineWriter writer(folder / name);
    writer.finish();
    writer.publish();
    CHECK(read_lines(folder / name).empty());
  }
}
