#include "eval/perplexity_suite.h"

#include <set>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "data/scratch.h"
#include "eval/document_reader.h"
#include "support/catch.h"

using namespace olmo::eval;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace fs = std::filesystem;

namespace {

const fs::path kEvals = fs::path(OLMO_SOURCE_DIR) / "evals";

SuiteDefinition shipped(const std::string& name) {
  const fs::path file = kEvals / "suites" / (name + ".json");
  return parse_suite_definition(name, olmo::read_json_file(file), file.string());
}

Json minimal() {
  return {{"kind", "perplexity"},
          {"get", "put {file} into {data}"},
          {"folder", "set"},
          {"sources", {{{"name", "a"}}, {{"name", "b"}, {"get", "ask for it"}}}}};
}

std::string complaint(const Json& json) {
  const auto error = thrown_by([&] { parse_suite_definition("s", json, "s.json"); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kUsage);
  return error->text;
}

void put(const ScratchFolder& folder, const std::string& name, const std::string& bytes) {
  fs::create_directories((folder / name).parent_path());
  folder.write(name, bytes);
}

}  // namespace

TEST_CASE("Paloma's suite lists what the article counts", "[eval]") {
  const SuiteDefinition paloma = shipped("paloma");
  std::int64_t domains = 0, public_domains = 0, paper_domains = 0, paper = 0;
  for (const SourceDefinition& source : paloma.sources) {
    domains += source.domains;
    public_domains += source.is_public ? source.domains : 0;
    paper_domains += source.in_olmo_paper ? source.domains : 0;
    paper += source.in_olmo_paper ? 1 : 0;
    CHECK(source.path == source.name + "/val");
  }
  CHECK(paloma.sources.size() == 18);
  CHECK(domains == 585);
  CHECK(public_domains == 546);
  CHECK(paper == 11);
  CHECK(paper_domains == 433);
  CHECK(paloma.convention == DocumentConvention::kCatwalk);

  const SuiteDefinition of_paper = shipped("paloma-olmo-paper");
  std::vector<std::string> expected, listed;
  for (const SourceDefinition& source : paloma.sources)
    if (source.in_olmo_paper) expected.push_back(source.name);
  for (const SourceDefinition& source : of_paper.sources) listed.push_back(source.name);
  CHECK(listed == expected);
}

TEST_CASE("a suite that does not say how to get its data names where it is looked for", "[eval]") {
  const ScratchFolder folder;
  const SuiteDefinition suite = parse_suite_definition(
      "s", {{"kind", "perplexity"}, {"sources", {{{"name", "a"}}}}}, "s.json");
  const auto error = thrown_by([&] { resolve_suite(suite, std::vector{folder.path()}, false); });
  REQUIRE(error);
  CHECK(error->says("a: put it at " + (folder / "s/a/val").string()));
}

TEST_CASE("the in-loop suites carry OLMo's labels and files", "[eval]") {
  const auto v3 = shipped("v3-small-ppl-validation");
  REQUIRE(v3.sources.size() == 11);
  CHECK(v3.sources[0].name == "v3-small-c4_en-validation");
  CHECK(v3.folder + "/" + v3.sources[0].path ==
        "eval-data/perplexity/v3_small_gptneox20b/c4_en/val/part-0-00000.npy");
  CHECK(v3.convention == DocumentConvention::kOlmo);
  CHECK(shipped("v2-small-ppl-validation").sources.size() == 13);
  CHECK(shipped("all-small-ppl-validation").sources[0].name == "c4_en-validation");
  CHECK(shipped("all-small-ppl-validation-dolma2").dtype == olmo::data::TokenDtype::kUint32);
}

TEST_CASE("the sample suite is complete in a checkout", "[eval]") {
  const std::vector<fs::path> folders = {fs::path("nowhere"), kEvals};
  const auto resolved = resolve_suite(shipped("sample"), folders, true);
  CHECK(resolved.missing.empty());
  std::int64_t documents = 0, empty = 0, longest = 0;
  DocumentReader reader(resolved.suite.sources, std::nullopt);
  std::set<std::pair<std::string, std::string>> domains;
  for (Document document; reader.next(document); ++documents) {
    domains.insert({document.source, document.subdomain});
    empty += document.text.empty() ? 1 : 0;
    longest = std::max(longest, count_text(document.text).bytes);
  }
  CHECK(documents == 47);
  CHECK(domains.size() == 9);
  CHECK(empty == 1);
  CHECK(longest > 5000);
}

TEST_CASE("a source that is not on disk is named with how to get it", "[eval]") {
  const ScratchFolder folder;
  put(folder, "set/b/val/b.jsonl", "{\"text\": \"x\"}\n");
  const std::vector<fs::path> folders = {folder / "other", folder.path()};
  const auto definition = parse_suite_definition("s", minimal(), "s.json");

  const auto resolved = resolve_suite(definition, folders, false);
  REQUIRE(resolved.suite.sources.size() == 1);
  CHECK(resolved.suite.sources[0].name == "b");
  REQUIRE(resolved.missing.size() == 1);
  CHECK(resolved.missing[0].name == "a");
  CHECK(resolved.missing[0].path == (folder / "set/a/val").string());
  CHECK(resolved.missing[0].get == "put a/val into " + folder.path().string());

  const auto refused = thrown_by([&] { resolve_suite(definition, folders, true); });
  REQUIRE(refused);
  CHECK(refused->kind == ErrorKind::kInput);
  CHECK(refused->says("1 of its 2 sources are not on disk"));
  CHECK(refused->says("a: put a/val into"));

  const std::vector<fs::path> nothing = {folder / "nothing"};
  const auto all = thrown_by([&] { resolve_suite(definition, nothing, false); });
  REQUIRE(all);
  CHECK(all->says("b: ask for it"));
}

TEST_CASE("a definition that is not of the form is refused by key", "[eval]") {
  Json json = minimal();
  json["kind"] = "rank_classification";
  CHECK(complaint(json).find("`kind` must be perplexity") != std::string::npos);
  json = minimal();
  json["convenion"] = "olmo";
  CHECK(complaint(json).find("unknown key `convenion`") != std::string::npos);
  json = minimal();
  json["convention"] = "lm-eval";
  CHECK(complaint(json).find("s.json: `convention` must be catwalk or olmo") == 0);
  json = minimal();
  json["dtype"] = "int16";
  CHECK(complaint(json).find("s.json: `dtype` must be uint16 or uint32, got 'int16'") == 0);
  json = minimal();
  json["missing"] = "perhaps";
  CHECK(complaint(json).find("`missing` must be skip or refuse") != std::string::npos);
  json = minimal();
  json["sources"][1]["name"] = "a";
  CHECK(complaint(json).find("listed twice") != std::string::npos);
  json = minimal();
  json["sources"][0]["path"] = "../../etc/passwd";
  CHECK(complaint(json).find("below the data folder") != std::string::npos);
  json = minimal();
  json["sources"][0]["domains"] = -1;
  CHECK(complaint(json).find("sources[0]: `domains` must be a count") != std::string::npos);
  json = minimal();
  json.erase("sources");
  CHECK(complaint(json).find("`sources` must be a list") != std::string::npos);
  CHECK(complaint(Json::array()).find("expected a JSON object") != std::string::npos);
}

TEST_CASE("token files are of convention olmo, and of no other", "[eval]") {
  const ScratchFolder folder;
  put(folder, "a.npy", "1234");
  put(folder, "a.txt", "1234");
  CHECK(open_perplexity_suite("x", folder / "a.npy", {}).convention == DocumentConvention::kOlmo);
  CHECK(open_perplexity_suite("x", folder / "a.txt", {}).convention ==
        DocumentConvention::kCatwalk);
  CHECK(open_perplexity_suite("x", folder / "a.txt", DocumentConvention::kOlmo).convention ==
        DocumentConvention::kOlmo);
  const auto error = thrown_by(
      [&] { open_perplexity_suite("x", folder / "a.npy", DocumentConvention::kCatwalk); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kUsage);
  CHECK(error->says("convention catwalk does not apply"));
}
