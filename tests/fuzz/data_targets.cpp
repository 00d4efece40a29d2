#include <nlohmann/json.hpp>
#include <zlib.h>
#include <zstd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "data/arrow/arrow_stream.h"
#include "data/document_index.h"
#include "data/documents/attributes.h"
#include "data/documents/json_path.h"
#include "data/documents/lines.h"
#include "data/order.h"
#include "data/public/fetch.h"
#include "data/text_reader.h"
#include "data/token_file.h"
#include "data/tokenizer/tokenizer.h"
#include "data/zip_file.h"
#include "fuzz/target.h"

namespace olmo::fuzz {
namespace {

using namespace std::string_literals;

void parse_tokenizer(const std::string& input) {
  const auto tokenizer = data::Tokenizer::load(file_of(input, "tokenizer.json"));
  std::vector<std::uint32_t> ids;
  tokenizer.encode("The cat's 12 caf\xC3\xA9 <|endoftext|>\n\n  x", ids);
  (void)tokenizer.decode(ids);
}

void parse_text(const std::string& input) {
  data::LineReader reader(file_of(input, "text"), 1 << 16);
  for (data::Line line; reader.next(line);) (void)data::parse_document(line.bytes);
}

std::vector<std::string> text_seeds() {
  const std::string lines =
      "{\"text\": \"a \\u00e9 \\ud83d\\ude00\", \"id\": \"1\", \"source\": \"x\"}\n"
      "{\"id\": [1, {\"text\": 2}], \"text\": \"b\"}\n\nnot json\n";
  std::vector<std::string> seeds = {lines, "{\"text\": \"\xff\"}"};
  std::string gzip(1024, 0);
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(lines.data()));
  stream.avail_in = static_cast<uInt>(lines.size());
  stream.next_out = reinterpret_cast<Bytef*>(gzip.data());
  stream.avail_out = static_cast<uInt>(gzip.size());
  deflate(&stream, Z_FINISH);
  gzip.resize(stream.total_out);
  deflateEnd(&stream);
  std::string zstd(1024, 0);
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), lines.data(), lines.size(), 3));
  seeds.push_back(gzip);
  seeds.push_back(gzip + gzip);
  seeds.push_back(zstd);
  seeds.push_back(zstd + zstd);
  return seeds;
}

/// The sidecar, then a line feed, then the tokens.
void parse_token_file(const std::string& input) {
  const auto end = input.find('\n');
  const auto tokens =
      file_of(end == std::string::npos ? input : input.substr(end + 1), "tokens.npy");
  file_of(input.substr(0, end), "tokens.npy.json");
  (void)data::read_sidecar(tokens);
  for (const auto dtype : {data::TokenDtype::kUint16, data::TokenDtype::kUint32}) {
    try {
      data::TokenFile(tokens, dtype).check_ids_below(500);
    } catch (const Error&) {  // one of the two does not fit
    }
  }
}

std::vector<std::string> token_file_seeds() {
  const std::string tokens("\1\0\2\0\3\0\4\0", 8);
  return {
      "{\"dtype\": \"uint16\", \"tokens\": 4, \"eos_token_id\": 0, \"tokenizer\": {\"path\": "
      "\"t.json\", \"sha256\": \"00\"}}\n" +
          tokens,
      "{}\n" + tokens, "{}\n\x93NUMPY\1\0v\0{'descr': '<u2', 'shape': (4,)}"s};
}

void parse_arrow(const std::string& input) {
  (void)data::read_arrow_stream(file_of(input, "data.arrow"));
}

void parse_wheel(const std::string& input) {
  std::error_code ignored;
  const auto folder = scratch_folder() / "wheel";
  std::filesystem::remove_all(folder, ignored);
  (void)data::unpack_zip(file_of(input, "a.whl"), folder,
                         [](std::string_view name) { return std::string(name); });
}

/// A zip of two stored entries.
std::vector<std::string> wheel_seeds() {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string zip, index;
  int entries = 0;
  for (const auto& [name, text] :
       {std::pair<std::string, std::string>{"a/b.json", "{}"}, {"c.txt", "words"}}) {
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
    const std::string facts = number(20, 2) + number(0, 2) + number(0, 2) + number(0, 4) +
                              number(crc, 4) + number(text.size(), 4) + number(text.size(), 4) +
                              number(name.size(), 2) + number(0, 2);
    index += "PK\1\2" + number(20, 2) + facts + number(0, 2) + number(0, 2) + number(0, 2) +
             number(0, 4) + number(zip.size(), 4) + name;
    zip += "PK\3\4" + facts + name + text;
    ++entries;
  }
  const auto count = number(static_cast<std::uint64_t>(entries), 2);
  return {zip + index + "PK\5\6" + number(0, 4) + count + count + number(index.size(), 4) +
          number(zip.size(), 4) + number(0, 2)};
}

constexpr data::OrderConfig kOrder{.instances = 8, .seed = 7};

/// The sidecar, then a zero byte, then the numbers.
void parse_order(const std::string& input) {
  const auto end = std::min(input.find('\0'), input.size());
  const auto path = data::order_path(scratch_folder(), 0).filename().string();
  file_of(input.substr(0, end), path + ".json");
  file_of(input.substr(std::min(end + 1, input.size())), path);
  if (const auto file = data::open_order_file(scratch_folder(), kOrder, 0)) {
    std::vector<std::uint32_t> numbers(file->size());
    try {
      file->read(0, numbers);
    } catch (const Error&) {  // altered
    }
  }
  (void)data::make_order_file(scratch_folder(), kOrder, 0);
  std::vector<std::uint32_t> numbers(kOrder.instances);
  data::open_order_file(scratch_folder(), kOrder, 0).value().read(0, numbers);
  if (numbers != data::build_order(kOrder, 0)) std::abort();  // what was altered was trusted
}

std::vector<std::string> order_seeds() {
  const auto path = data::order_path(scratch_folder(), 0);
  data::remove_order_file(scratch_folder(), 0);
  data::make_order_file(scratch_folder(), kOrder, 0);
  return {read_file(path.string() + ".json") + std::string(1, '\0') + read_file(path)};
}

void parse_document_index(const std::string& input) {
  const data::DocumentIndex index{.path = file_of(input, "index.csv"), .tokens = 9, .sha256 = {}};
  (void)data::count_sources(index);
  (void)data::find_documents(index, {{.begin = 7, .end = 8}, {.begin = 0, .end = 4}});
}

std::vector<std::string> document_index_seeds() {
  return {"0,3,a,x.jsonl,1\n3,9,\"b, \"\"c\"\"\",x.jsonl,2\n",
          "0,3,\"a\n\",x,1\r\n3,3,,x,2\r\n3,9,d,y,1\r\n"};
}

/// A path, then a line feed, then a document that it looks into and whose spans are replaced.
void parse_json_path(const std::string& input) {
  const auto end = std::min(input.find('\n'), input.size());
  const data::JsonPath path(std::string_view(input).substr(0, end));
  const auto parsed = data::parse_whole_document(
      {.bytes = input.substr(std::min(end + 1, input.size())), .number = 2, .too_long = false});
  if (!parsed.problem.empty()) return;
  std::vector<data::Span> spans;
  for (const Json* value : path.find(*parsed.document)) {
    if (value->is_number_unsigned())
      spans.push_back(
          {.begin = value->get<std::uint64_t>() / 7, .end = value->get<std::uint64_t>()});
  }
  (void)data::replace_spans((*parsed.document)["text"].get<std::string>(), spans);
}

std::vector<std::string> json_path_seeds() {
  const std::string document =
      "\n{\"text\": \"a \\u00e9 long text\", \"s\": [[0, 5, 1.0], [7, 9, 0.5]], \"f\": true, "
      "\"o\": {\"a key\": 3}}";
  std::vector<std::string> seeds;
  for (const char* path : {"$.s[*][1]", "$.s[?(@[2] >= 0.5 && !@[3])][0]", "$@.o['a key']",
                           "$[?(@.f == true)].o.*", "$.s[?((@[0] < 1 || @[1] != 'x') && $.o)]"})
    seeds.push_back(path + document);
  return seeds;
}

}  // namespace

std::vector<Target> data_targets() {
  return {{"tokenizer", 1 << 15, parse_tokenizer,
           [] { return files_below("tests/data/data", "tokenizer_cl100k.json"); }},
          {"text", 1 << 13, parse_text, text_seeds},
          {"token_file", 1 << 10, parse_token_file, token_file_seeds},
          {"arrow", 1 << 13, parse_arrow, [] { return files_below("tests/data/data", ".arrow"); }},
          {"document_index", 1 << 8, parse_document_index, document_index_seeds},
          {"json_path", 1 << 10, parse_json_path, json_path_seeds},
          {"order", 1 << 10, parse_order, order_seeds},
          {"wheel", 1 << 12, parse_wheel, wheel_seeds}};
}

}  // namespace olmo::fuzz
