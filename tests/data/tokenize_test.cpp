#include "data/tokenize.h"

#include <csignal>

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include "data/document_index.h"
#include "data/scratch.h"
#include "data/token_file.h"
#include "support/catch.h"
#include "support/forked.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::padded;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

/// A byte-level tokenizer without merges: 256 bytes, then <|endoftext|> (256) and <other> (257).
std::filesystem::path write_byte_tokenizer(const ScratchFolder& folder) {
  // GPT-2's byte alphabet: printable Latin-1 as it is, the rest from U+0100 on.
  Json vocabulary = Json::object();
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const std::uint32_t code = plain ? byte : next++;
    std::string name;
    if (code < 0x80) {
      name = static_cast<char>(code);
    } else {
      name = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    }
    vocabulary[name] = byte;
  }
  const auto special = [](std::uint32_t id, const char* text) {
    return Json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  const Json file = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", {special(256, "<|endoftext|>"), special(257, "<other>")}},
                     {"normalizer", {{"type", "NFC"}}},
                     {"pre_tokenizer", byte_level},
                     {"post_processor", byte_level},
                     {"decoder", byte_level},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"vocab", vocabulary},
                       {"merges", Json::array()}}}};
  return folder.write("tokenizer.json", file.dump());
}

struct Scene {
  ScratchFolder folder;
  std::filesystem::path tokenizer_path = write_byte_tokenizer(folder);
  Tokenizer tokenizer = Tokenizer::load(tokenizer_path);

  [[nodiscard]] TokenizeOptions options(const std::string& lines,
                                        const std::string& output = "out.npy") const {
    TokenizeOptions options;
    options.inputs = {folder.write("in.jsonl", lines)};
    options.tokenizer_path = tokenizer_path;
    options.output = folder / output;
    return options;
  }
  [[nodiscard]] std::vector<std::uint32_t> ids(const std::string& name = "out.npy",
                                               TokenDtype dtype = TokenDtype::kUint16) const {
    const TokenFile file(folder / name, dtype);
    std::vector<std::uint32_t> ids(file.size());
    file.read(0, std::span<std::uint32_t>(ids));
    return ids;
  }
  [[nodiscard]] bool left_anything(const std::string& prefix) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().filename().string().rfind(prefix, 0) == 0) return true;
    }
    return false;
  }
};

const std::vector<std::uint32_t> kAB = {'a', 256, 'b', 'c', 256};

}  // namespace

TEST_CASE("documents are stripped, closed by EOS and joined; empty ones are skipped", "[data]") {
  const Scene scene;
  const auto report = tokenize(
      scene.options("{\"text\": \" a\\n\"}\n{\"text\": \" \\u00a0 \"}\n\n{\"text\": \"bc\"}"),
      scene.tokenizer);
  CHECK(scene.ids() == kAB);
  CHECK((report.documents == 2 && report.tokens == 5 && report.text_bytes == 3));
  CHECK((report.sources[0].empty_documents == 1 && report.sources[0].blank_lines == 1 &&
         report.sources[0].file.lines == 4));
}

TEST_CASE("a document that ends with EOS gets no second one", "[data]") {
  const Scene scene;
  tokenize(scene.options("{\"text\": \"a<|endoftext|>\"}\n{\"text\": \"bc\"}\n"), scene.tokenizer);
  CHECK(scene.ids() == kAB);
}

TEST_CASE("the post-processor's special tokens are added, as OLMo's preparation adds them",
          "[data]") {
  Scene scene;
  Json file = olmo::read_json_file(scene.tokenizer_path);
  file["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", {"<|endoftext|>", 256}},
                            {"cls", {"<other>", 257}},
                            {"trim_offsets", true},
                            {"add_prefix_space", false}};
  scene.tokenizer = Tokenizer::load(scene.folder.write("tokenizer.json", file.dump()));
  tokenize(scene.options("{\"text\": \"a\"}\n{\"text\": \"bc\"}\n"), scene.tokenizer);
  CHECK(scene.ids() == std::vector<std::uint32_t>{257, 'a', 256, 257, 'b', 'c', 256});
}

TEST_CASE("the sidecar records what made the file", "[data]") {
  const Scene scene;
  const auto options = scene.options("{\"text\": \"a\"}\n{\"text\": \"bc\"}\n");
  tokenize(options, scene.tokenizer);
  const Json facts = olmo::read_json_file(scene.folder / "out.npy.json");
  CHECK(facts.at("documents") == 2);
  CHECK(facts.at("tokens") == 5);
  CHECK(facts.at("sha256") == olmo::sha256_file(scene.folder / "out.npy").hex());
  CHECK(facts.at("tokenizer").at("sha256") == olmo::sha256_file(scene.tokenizer_path).hex());
  CHECK(facts.at("sources").at(0).at("sha256") == olmo::sha256_file(options.inputs[0]).hex());
  const auto sidecar = read_sidecar(scene.folder / "out.npy");
  REQUIRE(sidecar);
  CHECK((sidecar->dtype == TokenDtype::kUint16 && sidecar->eos_token_id == 256));
}

TEST_CASE("a bad line stops the command with file and line, and nothing is written", "[data]") {
  const Scene scene;
  const auto options = scene.options("{\"text\": \"a\"}\n{\"text\": 3}\n{broken\n");
  const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput &&
         error->says("in.jsonl:2: the line has a `text` that is not a string")));
  CHECK_FALSE(scene.left_anything("out"));
}

TEST_CASE("a signal leaves nothing of a token file and its sidecar", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n");
  options.on_progress = [](const olmo::Progress&) { std::raise(SIGTERM); };
  const pid_t child = olmo::test::fork_briefly();  // which takes the signal
  if (child == 0) {
    const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
    ::_exit(error ? static_cast<int>(error->kind) : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == static_cast<int>(ErrorKind::kStopped));
  CHECK_FALSE(scene.left_anything("out"));
}

TEST_CASE("the index beside each token file tells its documents", "[data]") {
  const Scene scene;
  auto options = scene.options(
      "{\"text\": \"abc\", \"id\": \"x\"}\n\n{\"text\": \" \"}\n{\"text\": \"de\", \"id\": 7}\n",
      "out");
  options.max_tokens_per_file = 5;
  const auto report = tokenize(options, scene.tokenizer);
  REQUIRE(report.outputs.size() == 2);
  const auto rows = [&](std::size_t part) {
    const auto& output = report.outputs[part];
    const auto index = find_document_index(TokenFile(output.path, TokenDtype::kUint16));
    CHECK(index.value().sha256);
    return find_documents(*index, {{.begin = 0, .end = output.tokens}});
  };
  const auto first = rows(0), second = rows(1);
  REQUIRE((first.size() == 2 && second.size() == 1));
  CHECK((first[0].origin.id == "x" && first[0].origin.line == 1 && first[0].tokens.end == 4));
  CHECK(first[0].origin.source == options.inputs[0].string());
  CHECK((first[1].origin.id.empty() && first[1].origin.line == 4 && first[1].tokens.end == 5));
  CHECK((second[0].origin.line == 4 && second[0].tokens.begin == 0 && second[0].tokens.end == 2));
}

TEST_CASE("an index that exists is not replaced unasked", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n");
  scene.folder.write("out.csv.gz", "mine");
  const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kUsage && error->says("out.csv.gz: exists already")));
  options.overwrite = true;
  tokenize(options, scene.tokenizer);
  CHECK(std::filesystem::exists(scene.folder / "out.npy"));
}

TEST_CASE("folders that were made for token files go with them, and others stay", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": 3}\n");
  options.output = scene.folder / "new" / "tokens";
  CHECK(thrown_by([&] { tokenize(options, scene.tokenizer); }));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "new"));
  std::filesystem::create_directory(scene.folder / "new");
  CHECK(thrown_by([&] { tokenize(options, scene.tokenizer); }));
  CHECK(std::filesystem::is_empty(scene.folder / "new"));
}

TEST_CASE("skipped bad lines are counted and located", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n{\"text\": 3}\n{broken\n{\"text\": \"bc\"}\n");
  options.on_bad_line = BadLinePolicy::kSkip;
  const auto report = tokenize(options, scene.tokenizer);
  CHECK(scene.ids() == kAB);
  REQUIRE(report.bad_lines.first().size() == 2);
  CHECK((report.bad_lines.first()[0].line == 2 && report.bad_lines.first()[1].line == 3));
  const Json facts = olmo::read_json_file(scene.folder / "out.npy.json");
  CHECK(facts.at("bad_lines").at("count") == 2);
  CHECK(facts.at("on_bad_line") == "skip");
}

TEST_CASE("token files do not depend on the number of threads", "[data]") {
  const Scene scene;
  std::string lines;
  for (std::size_t i = 0; i < 30000; ++i)
    lines += "{\"text\": \"document " + std::to_string(i) +
             std::string(static_cast<std::size_t>(i % 700), 'x') + "\"}\n";
  auto options = scene.options(lines, "one.npy");
  tokenize(options, scene.tokenizer);
  options.output = scene.folder / "three.npy";
  options.threads = 3;
  tokenize(options, scene.tokenizer);
  CHECK(olmo::sha256_file(scene.folder / "one.npy") ==
        olmo::sha256_file(scene.folder / "three.npy"));
}

TEST_CASE("several files follow each other and a document that overflows one continues in the next",
          "[data]") {
  const Scene scene;
  auto options =
      scene.options("{\"text\": \"abcde\"}\n{\"text\": \"fg\"}\n{\"text\": \"h\"}\n", "folder");
  options.max_tokens_per_file = 4;
  const auto report = tokenize(options, scene.tokenizer);
  REQUIRE(report.outputs.size() == 3);
  CHECK(scene.ids("folder/tokens_00000.npy") == std::vector<std::uint32_t>{'a', 'b', 'c', 'd'});
  CHECK(scene.ids("folder/tokens_00001.npy") == std::vector<std::uint32_t>{'e', 256, 'f', 'g'});
  CHECK(scene.ids("folder/tokens_00002.npy") == std::vector<std::uint32_t>{256, 'h', 256});
  CHECK((report.outputs[0].documents == 0 && report.outputs[1].documents == 1 &&
         report.outputs[2].documents == 2));
  CHECK(read_sidecar(scene.folder / "folder/tokens_00001.npy")->tokens == 4);
}

TEST_CASE("parts of an earlier, longer run are not taken for parts of this one", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"abcde\"}\n", "folder");
  options.max_tokens_per_file = 4;
  tokenize(options, scene.tokenizer);
  options.inputs = {scene.folder.write("less.jsonl", "{\"text\": \"x\"}\n")};
  options.overwrite = true;
  const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kUsage &&
         error->says("tokens_00001.npy: is left from an earlier")));
  CHECK(scene.ids("folder/tokens_00000.npy") == std::vector<std::uint32_t>{'a', 'b', 'c', 'd'});
}

TEST_CASE("an EOS that is not the tokenizer's <|endoftext|> is used, warned of and recorded",
          "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n");
  options.eos_token_id = 257;
  const auto report = tokenize(options, scene.tokenizer);
  CHECK(scene.ids() == std::vector<std::uint32_t>{'a', 257});
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("eos_token_id 257 is '<other>'") == 0);
  CHECK(olmo::read_json_file(scene.folder / "out.npy.json").at("warnings").size() == 1);
}

TEST_CASE("an EOS outside the vocabulary is a usage error", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n");
  options.eos_token_id = 258;
  const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kUsage && error->says("258")));
}

TEST_CASE("uint32 can be asked for", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n");
  options.dtype = TokenDtype::kUint32;
  tokenize(options, scene.tokenizer);
  CHECK(scene.ids("out.npy", TokenDtype::kUint32) == std::vector<std::uint32_t>{'a', 256});
}

TEST_CASE("an output that exists is kept unless it may be replaced", "[data]") {
  const Scene scene;
  auto options = scene.options("{\"text\": \"a\"}\n");
  tokenize(options, scene.tokenizer);
  options.inputs = {scene.folder.write("more.jsonl", "{\"text\": \"bc\"}\n")};
  const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kUsage && error->says("out.npy: exists already")));
  CHECK(scene.ids() == std::vector<std::uint32_t>{'a', 256});
  options.overwrite = true;
  tokenize(options, scene.tokenizer);
  CHECK(scene.ids() == std::vector<std::uint32_t>{'b', 'c', 256});
}

TEST_CASE("inputs without a document are an input error", "[data]") {
  const Scene scene;
  const auto error =
      thrown_by([&] { tokenize(scene.options("\n{\"text\": \"\"}\n"), scene.tokenizer); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("no document")));
  CHECK_FALSE(scene.left_anything("out"));
}

TEST_CASE("when the output cannot grow, one sentence says so and nothing stays", "[data]") {
  const Scene scene;
  const auto options = scene.options(padded("{\"text\": \"", 4 << 20, 'x', "\"}\n"));
  // A file size limit stands for the full disk: write() fails the same way.
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto error = thrown_by([&] { tokenize(options, scene.tokenizer); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kFailure && error->says("out.npy: cannot be written")));
  CHECK_FALSE(scene.left_anything("out"));
}
