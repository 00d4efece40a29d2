#include "data/data_order.h"

#include <span>

#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "core/json.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::Json;

namespace {

std::string digest_of(const std::vector<std::uint32_t>& order) {
  return olmo::sha256(std::as_bytes(std::span(order))).hex();
}

}  // namespace

TEST_CASE("the order of an epoch equals OLMo's IterableDataset", "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("orders");
  for (const Json& row : golden) {
    INFO(row.dump());
    const auto order = build_order(
        {.instances = row.at("n"), .seed = row.at("seed"), .shuffle = row.at("shuffle")},
        row.at("epoch"));
    CHECK(digest_of(order) == row.at("order").at("sha256").get<std::string>());
  }
}

TEST_CASE("more instances than 32-bit numbers are refused before they are allocated", "[data]") {
  const auto error = olmo::test::thrown_by([] { build_order({.instances = 0xFFFFFFFFULL}, 0); });
  REQUIRE(error);
  CHECK((error->kind == olmo::ErrorKind::kInput && error->says("2^32 - 1")));
}
