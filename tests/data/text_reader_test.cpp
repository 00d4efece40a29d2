#include "data/text_reader.h"

#include <zlib.h>
#include <zstd.h>

#include "core/hash.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::test::padded;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as the zstd program does
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::vector<std::string> lines_of(const std::filesystem::path& path,
                                  std::size_t max_line = LineReader::kMaxLine) {
  LineReader reader(path, max_line);
  std::vector<std::string> lines;
  for (Line line; reader.next(line);) lines.push_back(line.bytes);
  return lines;
}

/// Lines that do not compress to nothing and span several blocks.
std::string long_text() {
  std::string text;
  for (std::uint64_t i = 0; i < 20000; ++i)
    text += "line " + std::to_string(i * i * 2654435761U) + " of the text\n";
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

olmo::test::Thrown refusal(const std::filesystem::path& path) {
  const auto error = thrown_by([&] { lines_of(path); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kInput);
  CHECK(error->says(path.filename().string()));
  return *error;
}

}  // namespace

TEST_CASE("plain, gzip and zstd files give the same lines, members and frames joined", "[data]") {
  const ScratchFolder folder;
  const std::string text = long_text();
  const std::string head = text.substr(0, 300001);
  const std::string tail = text.substr(300001);
  const auto expected = split(text);
  CHECK(lines_of(folder.write("a.jsonl", text)) == expected);
  CHECK(lines_of(folder.write("a.jsonl.gz", gzip(head) + gzip("") + gzip(tail))) == expected);
  CHECK(lines_of(folder.write("a.jsonl.zst", zstd(head) + zstd(tail))) == expected);
}

TEST_CASE("compression is recognised by content, whatever the name", "[data]") {
  const ScratchFolder folder;
  CHECK(lines_of(folder.write("a.jsonl", gzip("x\ny"))) == std::vector<std::string>{"x", "y"});
}

TEST_CASE("a name that promises gzip or zstd over other content is refused", "[data]") {
  const ScratchFolder folder;
  CHECK(refusal(folder.write("a.jsonl.gz", "{\"text\": \"plain\"}\n")).says("is not gzip data"));
  CHECK(refusal(folder.write("a.jsonl.zst", "")).says("is not zstd data"));
}

TEST_CASE("a format of other programs is refused by its name, packed or not", "[data]") {
  const ScratchFolder folder;
  const std::string parquet = padded("PAR1", 600000, '\0');
  for (const auto& bytes : {parquet, gzip(parquet), zstd(parquet)}) {
    const auto error = refusal(folder.write("a.jsonl", bytes));
    CHECK(error.says("is a Parquet file, expected JSON lines with a field `text`"));
    CHECK(error.says("convert it first"));
  }
  CHECK(refusal(folder.write("a.jsonl", "BZh91AY&SY")).says("is bzip2 data"));
  CHECK(refusal(folder.write("b.jsonl", "BZh91AY&SY")).says("unpack it first"));
  // Only at the beginning.
  const std::string line = std::string(1 << 18, 'x') + "PAR1";
  CHECK(lines_of(folder.write("c.jsonl", line)) == std::vector<std::string>{line});
}

TEST_CASE("truncated gzip names the file and where it stops", "[data]") {
  const ScratchFolder folder;
  const std::string whole = gzip(long_text());
  const auto error = refusal(folder.write("cut.jsonl.gz", whole.substr(0, whole.size() - 9)));
  const std::string place = std::to_string(whole.size() - 9);
  CHECK(error.says("truncated: it stops at byte " + place + " of " + place));
}

TEST_CASE("a flipped byte in gzip is found, in the data or by its checksum", "[data]") {
  const ScratchFolder folder;
  std::string damaged = gzip(long_text());
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);
  CHECK(refusal(folder.write("bad.jsonl.gz", damaged)).says("corrupt"));
}

TEST_CASE("rubbish after gzip data is refused, zero padding is not", "[data]") {
  const ScratchFolder folder;
  CHECK(refusal(folder.write("a.gz", gzip("x\n") + "rubbish"))
            .says("something that is not gzip follows"));
  CHECK(lines_of(folder.write("b.gz", padded(gzip("x\n"), 512, '\0'))) ==
        std::vector<std::string>{"x"});
}

TEST_CASE("truncated and corrupt zstd name the file", "[data]") {
  const ScratchFolder folder;
  const std::string whole = zstd(long_text());
  CHECK(refusal(folder.write("cut.zst", whole.substr(0, whole.size() / 2))).says("truncated"));
  std::string damaged = whole;
  for (std::size_t i = 100; i < 140; ++i) damaged[i] = static_cast<char>(~damaged[i]);
  CHECK(refusal(folder.write("bad.zst", damaged)).says("zstd data is"));
}

TEST_CASE("the digest is that of the file as it lies", "[data]") {
  const ScratchFolder folder;
  const auto path = folder.write("a.jsonl.gz", gzip(long_text()));
  LineReader reader(path);
  for (Line line; reader.next(line);) {
  }
  CHECK(reader.source().digest() == olmo::sha256_file(path));
  CHECK(reader.source().file_position() == reader.source().file_size());
}

TEST_CASE("a line beyond the bound is marked and its memory is bounded", "[data]") {
  const ScratchFolder folder;
  LineReader reader(folder.write("a.jsonl", padded("", 1000, 'x', "\nshort\n")), 100);
  Line line;
  REQUIRE(reader.next(line));
  CHECK((line.too_long && line.bytes.size() == 100 && line.number == 1));
  REQUIRE(reader.next(line));
  CHECK((!line.too_long && line.bytes == "short" && line.number == 2));
  CHECK_FALSE(reader.next(line));
}

TEST_CASE("the text of a document line is found among its other fields", "[data]") {
  const auto document = parse_document(
      R"({"id": "1", "metadata": {"text": "not this", "n": [1, {"text": 2}]}, "text": "a\u00e9\n\ud83d\ude00", "x": null})");
  REQUIRE(document.text);
  CHECK(*document.text == "a\u00e9\n\U0001F600");
}

TEST_CASE("lines that give no document say why", "[data]") {
  const auto problem = [](std::string_view line) {
    const auto document = parse_document(line);
    CHECK_FALSE(document.text);
    return document.problem;
  };
  CHECK(problem(R"({"id": 1})") == "has no field `text`");
  CHECK(problem(R"({"text": 5})") == "has a `text` that is not a string");
  CHECK(problem(R"({"text": {"text": "x"}})") == "has a `text` that is not a string");
  CHECK(problem(R"(["text", "x"])") == "is not a JSON object");
  CHECK(problem(R"("text")") == "is not a JSON object");
  CHECK(problem(R"({"text": "x")").find("is not valid JSON at byte") == 0);
  CHECK(problem("{\"text\": \"\xff\"}").find("is not valid JSON at byte") == 0);
  CHECK(problem(R"({"text": "\ud800"})").find("is not valid JSON at byte") == 0);
  CHECK(problem(R"({"text": "x"} tail)").find("is not valid JSON at byte") == 0);
  // What the text says is not taken for what is wrong with it.
  CHECK(problem("{\"text\": \"; last read a syntax error \xff\"}") ==
        "is not valid JSON at byte 38 (syntax error while parsing value - invalid string: "
        "ill-formed UTF-8 byte)");
}

TEST_CASE("nesting does not exhaust the stack", "[data]") {
  const std::string deep = padded("{\"a\": ", 1000000, '[');
  CHECK_FALSE(parse_document(deep).text);
}

TEST_CASE("folders become their sorted text files", "[data]") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "sub");
  for (const char* name : {"b.jsonl", "a.jsonl.gz", "sub/c.json.gz", "readme.md", "d.jsonl.zst"})
    folder.write(name, "x");
  const auto single = folder.write("single.txt", "x");
  const auto files = expand_inputs({single, folder / "sub"});
  CHECK(files == std::vector<std::filesystem::path>{single, folder / "sub" / "c.json.gz"});
  const auto all = expand_inputs({folder.path()});
  REQUIRE(all.size() == 4);
  CHECK((all[0].filename() == "a.jsonl.gz" && all[1].filename() == "b.jsonl" &&
         all[3].filename() == "c.json.gz"));
}

TEST_CASE("of a folder in Dolma's layout the documents are read, and not their attributes",
          "[data]") {
  const ScratchFolder folder;
  for (const char* name : {"documents/a", "attributes/tagger/a"}) {
    std::filesystem::create_directories(folder / name);
    folder.write(std::string(name) + "/x.jsonl", "x");
  }
  CHECK(expand_inputs({folder.path()}) ==
        std::vector<std::filesystem::path>{folder / "documents/a/x.jsonl"});
  CHECK(expand_inputs({folder / "attributes"}).size() == 1);
  std::filesystem::remove_all(folder / "documents");
  CHECK(expand_inputs({folder.path()}).size() == 1);
}

TEST_CASE("a document with a key twice is a bad line", "[data]") {
  const auto document = parse_document(R"({"text": "a", "meta": {"text": "x"}, "text": "b"})");
  CHECK_FALSE(document.text);
  CHECK(document.problem == "has the key `text` twice");
}

TEST_CASE("an input that does not exist is an input error", "[data]") {
  const auto error = thrown_by([] { expand_inputs({"/nonexistent/x.jsonl"}); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("/nonexistent/x.jsonl")));
}
