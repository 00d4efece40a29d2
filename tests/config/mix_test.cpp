#include "config/mix.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo::config {
namespace {

using Catch::Matchers::Contains;

struct Written {
  test::TemporaryDirectory folder;
  std::string path;
  explicit Written(const std::string& text, const std::string& name = "mix.yaml")
      : path((folder / name).string()) {
    std::ofstream(path) << text;
  }
};

MixConfig read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_mix_config(Written(text).path, overrides);
}

void check_refused(const std::string& text, const std::string& says) {
  INFO(text);
  try {
    read(text);
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_THAT(error.what(), Contains(says));
  }
}

/// A stream with a further line, which begins at its eighth.
std::string with(const std::string& line) {
  return "streams:\n"
         "  - name: wiki\n"
         "    documents:\n"
         "      - a.gz\n"
         "    output:\n"
         "      path: out\n"
         "      max_size_in_bytes: 100\n" +
         line + "\n";
}

}  // namespace

TEST_CASE("a mixer's config of Dolma 1.5 is read, with its references", "[config]") {
  const test::Environment home("OLMO_TEST_MIX", "/data");
  const MixConfig config = read(R"(
streams:
  - name: cc_en_head
    documents:
      - ${oc.env:OLMO_TEST_MIX}/documents/cc_en_head/*.gz
    output:
      path: ${oc.env:OLMO_TEST_MIX}/out
      max_size_in_bytes: 4294967296
      min_text_length: 1
      discard_fields:
        - attributes
    attributes: &attributes
      - pii_detection
      - bff_duplicate_paragraph_spans
    filter:
      include: []
      exclude:
        - "$.attributes[?(@.pii_detection__doc_count && @.pii_detection__doc_count[0]
          && @.pii_detection__doc_count[0][2] >= 6)]"
    span_replacement:
      - span: $.attributes.bff_duplicate_paragraph_spans
        min_score: 0.5
        replacement: ''
      - span: "$.attributes.email"
        max_score: 0.4
        replacement: " |||EMAIL_ADDRESS||| "
  - name: second
    documents: [b.gz]
    attributes: *attributes
    output: {path: out}
    compression: {input: gz, output: zst}

work_dir:
  input: /tmp/input
  output: /tmp/output
processes: 188
)");
  CHECK(config.options.threads == 188);
  CHECK_FALSE(config.dry_run);
  REQUIRE(config.notes.size() == 1);
  CHECK_THAT(config.notes[0], Contains("`work_dir`"));
  REQUIRE(config.options.streams.size() == 2);
  const data::MixStream& first = config.options.streams[0];
  CHECK(first.documents == std::vector<std::string>{"/data/documents/cc_en_head/*.gz"});
  CHECK((first.output == "/data/out" && first.max_size_in_bytes == 4294967296ULL));
  CHECK((first.min_text_length == 1 && first.discard_fields.size() == 1));
  CHECK((first.include.empty() && first.exclude.size() == 1));
  REQUIRE(first.span_replacement.size() == 2);
  CHECK((first.span_replacement[0].min_score == 0.5 && !first.span_replacement[0].max_score));
  CHECK(first.span_replacement[1].replacement == " |||EMAIL_ADDRESS||| ");
  CHECK(first.ending == ".gz");
  const data::MixStream& second = config.options.streams[1];
  CHECK((second.attributes == first.attributes && second.ending == ".zst"));
  CHECK(second.max_size_in_bytes == 2ULL << 30);
}

TEST_CASE("a mix by a config has the documents that Dolma's mixer writes", "[config]") {
  const std::filesystem::path golden = OLMO_TEST_DATA "/data/dolma";
  const test::TemporaryDirectory folder;
  const auto config =
      read_mix_config((golden / "mix.json").string(),
                      {"streams.0.documents=[" + (golden / "documents").string() + "]",
                       "streams.0.output.path=" + (folder / "out").string(), "processes=1"});
  data::mix(config.options);
  data::LineReader ours(folder / "out" / "s-0000.jsonl"), expected(golden / "mixed.jsonl");
  int lines = 0;
  for (data::Line line, other; expected.next(line); ++lines) {
    REQUIRE(ours.next(other));
    CHECK(Json::parse(other.bytes) == Json::parse(line.bytes));
  }
  CHECK(lines > 10);
  data::Line more;
  CHECK_FALSE(ours.next(more));
}

TEST_CASE("keys can be set from the command line", "[config]") {
  const auto config = read(with(""), {"streams.0.output.path=elsewhere", "dryrun=true"});
  CHECK(config.options.streams[0].output == "elsewhere");
  CHECK(config.dry_run);
}

TEST_CASE("a mixer's config may be JSON", "[config]") {
  const Written written(R"({"streams": [{"name": "s", "documents": ["a"], "attributes": null,
                                         "filter": null, "output": {"path": "o"}}]})",
                        "mix.json");
  CHECK(read_mix_config(written.path, {}).options.streams.at(0).name == "s");
}

TEST_CASE("what is wrong with a mixer's config is told with its line and key", "[config]") {
  check_refused("processes: 1", "`streams` must list what is mixed");
  check_refused("stream: []", "mix.yaml:1: `stream` is not a key; did you mean `streams`?");
  check_refused("- 1", "mix.yaml:1: is no config");
  check_refused("streams: {}", "`streams` must be a list");
  check_refused(with("    fliter: {}"),
                "mix.yaml:8: `streams.0.fliter` is not a key; did you mean `filter`?");
  check_refused(with("    filter: {include: ['$.a[']}"),
                "`streams.0.filter.include` has \"$.a[\", no JSONPath: expected");
  check_refused(with("    filter: {syntax: jq}"),
                "mix.yaml:8: `streams.0.filter.syntax` must be jsonpath, is jq");
  check_refused(with("    span_replacement: [{span: $.a, replacement: $.b}]"),
                "`streams.0.span_replacement.0.replacement` begins with `$`");
  check_refused(with("    span_replacement: [{replacement: x}]"),
                "`streams.0.span_replacement.0.span` has \"\", no JSONPath");
  check_refused(with("    compression: {output: xz}"), "`streams.0.compression.output` must be gz");
  check_refused(with("    attributes: 7"), "`streams.0.attributes` expects");
  check_refused(with("processes: many"), "mix.yaml:8: `processes` expects an integer, got");
  check_refused(with("processes: -1"), "`processes` must be at least 0");
  check_refused(with("processes: 4294967297"), "`processes` must be at most 4096");
  check_refused(with("      discard_fields: [text]"),
                "`streams.0.output.discard_fields` names `text`");
  check_refused(with("    filter: ${nothing.here}"), "mix.yaml:8");
  check_refused("streams: [{name: a/b, documents: [x], output: {path: o}}]", "a name without `/`");
  check_refused("streams: [{name: a, output: {path: o}}]", "`streams.0.documents` must name");
  check_refused("streams: [{name: a, documents: [x]}]", "`streams.0.output.path` must name");
  check_refused("streams: [x]", "`streams.0` must be a map of keys");
}

TEST_CASE("all that is wrong with a mixer's config is told at once", "[config]") {
  check_refused(with("    filter: {syntax: jq, excude: []}"), "did you mean `exclude`?\n");
}

}  // namespace olmo::config
