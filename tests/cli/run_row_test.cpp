#include "cli/run_row.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace olmo;

TEST_CASE("a run's row has null for what is not known, and its tags in one text", "[cli]") {
  store::RunOverview run;
  run.name = "n";
  run.tags = {"a", "b"};
  run.ce_loss = 2.5;
  const auto row = cli::overview_json(run);
  CHECK(row["name"] == "n");
  CHECK(row["tags"] == "a b");
  CHECK(row["ce_loss"] == 2.5);
  CHECK(row["step"].is_null());
  CHECK(row["chain_hash"].is_null());
}

TEST_CASE("a row of named values has NULL as null", "[cli]") {
  const auto row = cli::row_json({"a", "b", "c"}, {std::int64_t{1}, std::string("x"), {}});
  CHECK(row.dump() == R"({"a":1,"b":"x","c":null})");
}
