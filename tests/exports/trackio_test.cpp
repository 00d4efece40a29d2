#include "core/files/input_file.h"
#include "exports/export_fixture.h"
#include "exports/tools.h"
#include "store/database/sqlite.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::exports;
using namespace olmo::test;
namespace fs = std::filesystem;

TEST_CASE("trackio's database has a row a step and the config of each run", "[exports]") {
  const TemporaryDirectory folder;
  write_trackio(a_source(), folder.path(), "my project");
  const store::Database db(folder / "myproject.db", store::OpenMode::kReadOnly);
  CHECK(std::get<std::string>(db.value("SELECT metrics FROM metrics WHERE step = 2")) ==
        R"({"train/CrossEntropyLoss":"NaN"})");
  CHECK(std::get<std::string>(db.value("SELECT timestamp FROM metrics WHERE step = 1")) ==
        "2026-01-02T03:04:06.000000+00:00");
  CHECK(std::get<std::string>(
            db.value("SELECT json_extract(config, '$.model.d_model') || run_name FROM configs")) ==
        "64tiny");
}

TEST_CASE("a foreign config that has the name of ours is no obstacle to trackio's database",
          "[exports]") {
  const TemporaryDirectory folder;
  Source source = a_source();
  source.facts.config = R"({"olmo_harness": "theirs"})";
  write_trackio(source, folder.path(), "p");
  const store::Database db(folder / "p.db", store::OpenMode::kReadOnly);
  CHECK(std::get<std::string>(db.value(
            R"(SELECT config ->> '$.olmo_harness."environment.host"' FROM configs)")) == "nid1");
}
