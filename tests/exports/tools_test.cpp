#include "exports/tools.h"

#include "core/error.h"
#include "core/files/input_file.h"
#include "exports/export_fixture.h"
#include "store/database/sqlite.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::exports;
using namespace olmo::test;
namespace fs = std::filesystem;

TEST_CASE("a second export of a run takes the place of the first, and leaves other runs",
          "[exports]") {
  const auto tool = GENERATE(from_range(tools()));
  INFO(tool);
  const TemporaryDirectory folder;
  Source other = a_source("other");
  other.facts.run_id = "20260102T030405-11111111";
  export_run(other, tool, folder.path(), "p");
  export_run(a_source("tiny", 1.5), tool, folder.path(), "p");
  const auto once = files_of(folder.path());
  export_run(a_source(), tool, folder.path(), "p");
  CHECK(files_of(folder.path()) == once);
  if (tool == "trackio") {
    const store::Database db(folder / "p.db", store::OpenMode::kReadOnly);
    CHECK(std::get<std::int64_t>(db.value("SELECT count(*) FROM metrics")) == 4);
  }
}

TEST_CASE("hostile names of runs, projects, settings and metrics stay within the folder",
          "[exports]") {
  const auto tool = GENERATE(from_range(tools()));
  INFO(tool);
  const TemporaryDirectory folder;
  Source source = a_source("../../evil\n/x");
  source.facts.run_id = "../../../id";
  source.facts.settings = {{"../../../../p", "1"}, {"a", "1"}, {"a/b", "2"}, {"", "3"}};
  source.facts.tags = {"..", "/etc/x"};
  source.points = [](const OnPoint& visit) {
    visit({.step = 1,
           .unix_seconds = 1,
           .numbers = {{"../../../../m", 1}, {"m", 2}, {"m/n", 3}, {"/", 4}, {"a\\..\\b", 5}}});
  };
  const fs::path inner = folder / "inner";
  export_run(source, tool, inner, "../../project");
  std::vector<std::string> beside;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    beside.push_back(entry.path().filename().string());
  CHECK(beside == std::vector<std::string>{"inner"});
  CHECK_FALSE(files_of(inner).empty());
}

TEST_CASE("an export that fails leaves what was there", "[exports]") {
  const auto tool = GENERATE(from_range(tools()));
  INFO(tool);
  const TemporaryDirectory folder;
  export_run(a_source(), tool, folder.path(), "p");
  const auto before = files_of(folder.path());
  Source broken = a_source("tiny", 9);
  broken.points = [](const OnPoint& visit) {
    visit({.step = 1, .unix_seconds = 1, .numbers = {{"x", 1}}});
    throw Error(ErrorKind::kDamaged, "the database ends here");
  };
  CHECK_THROWS_AS(export_run(broken, tool, folder.path(), "p"), Error);
  CHECK(files_of(folder.path()) == before);
  if (tool == "trackio") {
    const store::Database db(folder / "p.db", store::OpenMode::kReadOnly);
    CHECK(std::get<std::int64_t>(db.value("SELECT count(*) FROM metrics")) == 2);
  }
}
