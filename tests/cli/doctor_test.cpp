#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "support/catch.h"
#include "support/environment.h"

namespace olmo::test {
namespace {

Ended doctor(const fs::path& output, Words words) {
  words.insert(words.begin(), "doctor");
  return harness(output, words);
}

}  // namespace

TEST_CASE("doctor says what the machine has, and that its results agree", "[cli]") {
  const TemporaryDirectory folder;
  const auto ended = doctor(folder / "json", {"--json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const Json facts = Json::parse(ended.out);
  CHECK(facts.at("healthy") == true);
  CHECK(facts.at("self_check").at("same") == true);
  CHECK(facts.at("self_check").at("ways").size() >= 2);
  CHECK(facts.at("self_check").at("operations").size() > 20);
  CHECK(facts.at("processor").at("cores_usable").get<int>() >= 1);
  CHECK(facts.at("memory").at("total_bytes").get<double>() > 0);
  CHECK(facts.at("policies").at("portable").at("isa") == facts.at("processor").at("isas").back());
  CHECK_FALSE(facts.at("policies").at("fast").at("matrix_library").get<std::string>().empty());
  CHECK(facts.at("build").contains("hdf5"));
  CHECK(facts.at("gpus").at("libraries").size() == 8);
  CHECK(facts.at("measured").at("product_gflops").get<double>() > 0);
  CHECK(facts.at("measured").at("fma_gflops").get<double>() >=
        facts.at("measured").at("product_gflops").get<double>());
  CHECK(facts.at("measured").at("memory_gb_per_s").get<double>() > 0);
  CHECK(fs::exists(facts.at("folders").at("libtorch").get<fs::path>() / "libtorch_cpu.so"));
  CHECK_FALSE(facts.at("sensors").empty());
  for (const auto& thing : facts.at("missing")) CHECK_FALSE(thing.at("command").empty());
}

TEST_CASE("doctor's text names the instruction set and the self-check", "[cli]") {
  const TemporaryDirectory folder;
  const Environment cache("OLMO_HARNESS_CACHE", (folder / "nothing").string());
  const auto ended = doctor(folder / "text", {});
  REQUIRE(ended.code == 0);
  for (const char* part : {"Machine", "Numerics", "isa ", "the same bits", "Energy", "Missing",
                           "\n  evaluation data and tokenizers\n   "}) {
    INFO(part);
    CHECK(ended.out.find(part) != std::string::npos);
  }
}

}  // namespace olmo::test
