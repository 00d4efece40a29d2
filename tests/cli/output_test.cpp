// What the binary prints: nothing is lost without a word, and no name becomes a command.
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "store/plain_records.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// A database with one run of this name, whose steps are none.
std::string database_of(const fs::path& folder, const std::string& name) {
  const auto path = folder / "run.db";
  auto db = store::RunDb::open(path, store::OpenMode::kCreate);
  db.begin_run(test::plain_run(name, 1), test::plain_attempt(), {});
  db.end_attempt("finished");
  return path.string();
}

/// The binary through a shell, for the redirections.
Ended shell(const fs::path& output, const std::string& command) {
  return Child({"/bin/sh", "-c", command}, output).wait();
}

}  // namespace

TEST_CASE("results that cannot be written are exit 1 and one sentence", "[cli]") {
  const TemporaryDirectory folder;
  const std::string list =
      std::string(OLMO_BINARY) + " runs list " + database_of(folder.path(), "a");
  const auto full = shell(folder / "log", list + " > /dev/full");
  INFO(full.err);
  CHECK(full.code == 1);
  CHECK(full.says("\nerror: standard output: cannot be written: No space left on device\n"));
  const auto closed = shell(folder / "log", list + " >&-");
  CHECK(closed.code == 1);
  CHECK(closed.says("\nerror: standard output: cannot be written: Bad file descriptor\n"));
  const auto out =
      shell(folder / "log", std::string(OLMO_BINARY) + " runs export " +
                                (folder / "run.db").string() + " --table runs --out /dev/full");
  CHECK((out.code == 1 && out.says("/dev/full: cannot be written")));
}

TEST_CASE("who stops reading is told nothing", "[cli]") {
  const TemporaryDirectory folder;
  const auto ended = shell(folder / "log", std::string(OLMO_BINARY) + " runs list --json " +
                                               database_of(folder.path(), "a") + " | true");
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
}

TEST_CASE("a hostile name commands neither a terminal nor a spreadsheet", "[cli]") {
  const TemporaryDirectory folder;
  const std::string name = "=HYPERLINK(\"x\")\x1b]0;owned\x07\xE2\x80\xAE\xff\n| a";
  const auto database = database_of(folder.path(), name);
  const auto runs = [&](Words words) {
    words.insert(words.begin(), "runs");
    return harness(folder / "log", words).out;
  };
  const auto list = runs({"list", database});
  CHECK(list.find_first_of("\x1b\x07\xff") == std::string::npos);
  CHECK(std::count(list.begin(), list.end(), '\n') == 2);
  const auto json = runs({"list", database, "--json"});
  CHECK(json.find("\\u202e") != std::string::npos);
  CHECK(Json::parse(json)["runs"][0]["name"].get<std::string>().starts_with("=HYPERLINK"));
  const auto csv = runs({"export", database, "--table", "runs", "--format", "csv"});
  CHECK(csv.find("\"'=HYPERLINK(\"\"x\"\")") != std::string::npos);
  CHECK(csv.find_first_of("\x1b\x07\xff") == std::string::npos);
}

TEST_CASE("a path that cannot be looked at is told with the system's reason, not as absent",
          "[cli]") {
  const TemporaryDirectory folder;
  const std::string loop = folder / "loop";
  fs::create_symlink("loop", loop);
  const std::string said = "error: " + loop + ": cannot be looked at: Too many levels of";
  for (const Words& words : {Words{"checkpoint", "verify", loop}, Words{"eval", loop},
                             Words{"runs", "show", loop}, Words{"report", "run", loop}}) {
    const auto ended = harness(folder / "log", words);
    CHECK(ended.code == 3);
    CHECK_THAT(ended.err, Catch::Matchers::Contains(said));
  }
  const auto ended = harness(folder / "log", {"eval", "--list", "--definitions", loop});
  CHECK(ended.code == 3);
  CHECK_THAT(ended.err, Catch::Matchers::Contains(loop + ": cannot be used: Too many levels of"));
}

TEST_CASE("a line end in a path begins no line that could be taken for a message", "[cli]") {
  const TemporaryDirectory folder;
  const auto ended = harness(folder / "log", {"checkpoint", "verify", folder / "a\nwarning: b"});
  CHECK(ended.code == 3);
  CHECK_THAT(ended.err, Catch::Matchers::Contains("a\n  warning: b: is no checkpoint"));
}

}  // namespace olmo::test
