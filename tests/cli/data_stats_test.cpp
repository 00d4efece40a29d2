#include <fstream>

#include <nlohmann/json.hpp>

#include "cli/said.h"
#include "cli/training.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

/// Three documents; they end with 9. No sidecar tells that.
std::string tokens_in(const TemporaryDirectory& folder) {
  write_tokens(folder / "a.npy", std::vector<std::uint16_t>{1, 2, 9, 3, 9, 4, 5, 9});
  return (folder / "a.npy").string();
}

}  // namespace

TEST_CASE("token files are counted one by one and together", "[cli]") {
  const TemporaryDirectory folder;
  const std::string file = tokens_in(folder);
  const Said said = say({"data", "stats", file, file, "--eos-token-id", "9", "--json"});
  REQUIRE(said.code == 0);
  const auto json = nlohmann::json::parse(said.out);
  REQUIRE(json.at("files").size() == 2);
  CHECK(json.at("files")[0].at("documents") == 3);
  CHECK(json.at("total").at("documents") == 6);
}

TEST_CASE("a token file that nothing tells the end of documents of is refused", "[cli]") {
  const TemporaryDirectory folder;
  const Said said = say({"data", "stats", tokens_in(folder)});
  CHECK(said.code == 2);
  CHECK_THAT(said.error, Catch::Contains("give --eos-token-id"));
}

}  // namespace olmo::test
