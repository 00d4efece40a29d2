#include "eval/selection.h"

#include "core/error.h"
#include "eval/task_data.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::eval;
using olmo::test::task_data;
using olmo::test::TemporaryDirectory;
using olmo::test::write_text;

namespace {

namespace fs = std::filesystem;

/// A suite of two sources, of which one has its file.
fs::path two_sources(const fs::path& folder) {
  write_text(folder / "data/mine/here/val/a.txt", "text");
  write_text(folder / "mine.json", R"({"kind": "perplexity", "get": "copy it to {data}/mine/{file}",
                                  "sources": [{"name": "here"}, {"name": "gone"}]})");
  return folder / "mine.json";
}

}  // namespace

TEST_CASE("names are sorted into tasks and perplexity suites, a suite file among them", "[eval]") {
  const TemporaryDirectory folder;
  const auto file = two_sources(folder.path());
  const auto catalog = load_catalog(std::nullopt, std::vector{file});
  const std::vector<std::string> names = {"arc_easy", file.string(), "openbookqa"};
  const auto selection =
      select(catalog, names, {.task_data = task_data(), .data = {folder / "data"}});
  REQUIRE(selection.tasks.size() == 2);
  CHECK(selection.tasks[0].name == "arc_easy");
  CHECK(selection.tasks[1].name == "openbookqa");
  REQUIRE(selection.suites.size() == 1);
  CHECK(selection.suites[0].name == "mine");
  REQUIRE(selection.suites[0].sources.size() == 1);
  CHECK(selection.suites[0].sources[0].name == "here");
}

TEST_CASE("a task's file in place of a suite's is told how to be asked", "[eval]") {
  const TemporaryDirectory folder;
  write_text(folder / "mine.json", R"({"source": "./mine.jsonl"})");
  const auto file = folder / "mine.json";
  const std::vector<std::string> names = {file.string()};
  CHECK_THROWS_WITH(
      select(load_catalog(std::nullopt, std::vector{file}), names, {.task_data = task_data()}),
      Catch::Matchers::Contains("is a task's file") && Catch::Matchers::Contains("--tasks mine"));
}

TEST_CASE("a source that is not here is told with its place and how to get it", "[eval]") {
  const TemporaryDirectory folder;
  const auto file = two_sources(folder.path());
  const auto catalog = load_catalog(std::nullopt, std::vector{file});
  const std::vector<std::string> names = {"mine"};
  const auto selection = select(catalog, names, {.data = {folder / "data"}});
  const std::string data = (folder / "data").string();
  CHECK(selection.notes() == std::vector<std::string>{"mine: gone is left out: " + data +
                                                      "/mine/gone/val is not here; "
                                                      "copy it to " +
                                                      data + "/mine/gone/val"});
  SelectionOptions strict{.data = {folder / "data"}, .refuse_missing = true};
  CHECK_THROWS_AS(select(catalog, names, strict), Error);
}

TEST_CASE("what is asked for twice is refused by its name", "[eval]") {
  PerplexitySuite suite;
  suite.name = "piqa";
  Task task;
  task.name = "piqa";
  CHECK(names_of(std::vector{task}, std::vector{suite}) ==
        std::vector<std::string>{"piqa", "piqa"});
  CHECK_THROWS_WITH(require_distinct({"a", "piqa", "b", "piqa"}), Catch::StartsWith("piqa: "));
  CHECK_NOTHROW(require_distinct({"a", "b"}));
}

TEST_CASE("a suite of token files leaves a source out that lacks one of its files", "[eval]") {
  const TemporaryDirectory folder;
  const auto here = (folder / "a.npy").string();
  write_text(here, "x");
  Selection selection;
  selection.add(suite_of_token_files("lm", {{"gone", {here, "/no/b.npy"}}, {"whole", {here}}},
                                     data::TokenDtype::kUint16));
  REQUIRE(selection.suites.size() == 1);
  REQUIRE(selection.suites[0].sources.size() == 1);
  CHECK(selection.suites[0].sources[0].name == "whole");
  CHECK(selection.notes() ==
        std::vector<std::string>{"lm: gone is left out: /no/b.npy is not here"});
  Selection empty;
  empty.add(suite_of_token_files("lm", {{"gone", {"/no/b.npy"}}}, data::TokenDtype::kUint16));
  CHECK(empty.suites.empty());
}
