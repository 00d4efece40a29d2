#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/said.h"
#include "core/files/json.h"
#include "core/process/process.h"
#include "store/database/schema.h"
#include "support/catch.h"

namespace olmo::test {

TEST_CASE("--version begins with one line for scripts", "[cli]") {
  const auto said = say({"--version"});
  CHECK(said.code == 0);
  CHECK(said.out.starts_with("olmo-harness " + build_info().version + " (" +
                             build_info().git_revision + ")\n"));
}

TEST_CASE("--version --json tells build, formats and libraries", "[cli]") {
  const auto said = say({"--version", "--json"});
  REQUIRE(said.code == 0);
  const Json facts = Json::parse(said.out);
  CHECK(facts["version"] == build_info().version);
  CHECK(facts["formats"]["database"]["writes"] == store::kSchemaVersion);
  CHECK(facts["formats"]["parity_report"]["writes"] == "olmo-harness/parity@1");
  CHECK_FALSE(facts["build_type"].get<std::string>().empty());
}

TEST_CASE("--version tells the LibTorch that is loaded, and from where", "[cli]") {
  const Json torch = Json::parse(say({"--json", "--version"}).out)["libraries"]["libtorch"];
  CHECK(torch["version"] == build_info().libtorch);
  CHECK(std::filesystem::is_regular_file(torch["path"].get<std::string>()));
}

}  // namespace olmo::test
