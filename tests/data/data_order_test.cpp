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

TEST_CASE("global and rank orders equal OLMo's IterableDataset", "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("orders");
  for (const Json& row : golden) {
    INFO(row.dump());
    const OrderConfig config{.instances = row.at("n"),
                             .seed = row.at("seed"),
                             .shuffle = row.at("shuffle"),
                             .drop_last = row.at("drop_last"),
                             .world_size = row.at("world_size")};
    CHECK(total_size(config) == row.at("total_size").get<std::uint64_t>());
    const auto order = build_order(config, row.at("epoch"));
    CHECK(digest_of(order) == row.at("order").at("sha256").get<std::string>());
    const Json& ranks = row.at("ranks");
    CHECK(digest_of(rank_order(order, row.at("start_index"), config.world_size, 0)) ==
          ranks.front().at("sha256").get<std::string>());
    CHECK(digest_of(
              rank_order(order, row.at("start_index"), config.world_size, config.world_size - 1)) ==
          ranks.back().at("sha256").get<std::string>());
  }
}

TEST_CASE("the set of a step does not depend on the world size", "[data]") {
  const auto order = build_order({.instances = 96, .seed = 4}, 0);
  std::vector<std::uint32_t> joined;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const auto mine = rank_order(order, 8, 4, rank);
    joined.insert(joined.end(), mine.begin(),
                  mine.begin() + 2);  // a step of 8 gives each of 4 ranks 2 instances
  }
  std::vector<std::uint32_t> expected(order.begin() + 8, order.begin() + 16);
  std::sort(joined.begin(), joined.end());
  std::sort(expected.begin(), expected.end());
  CHECK(joined == expected);
}

TEST_CASE("more instances than 32-bit numbers are refused before they are allocated", "[data]") {
  const auto error = olmo::test::thrown_by([] { build_order({.instances = 0xFFFFFFFFULL}, 0); });
  REQUIRE(error);
  CHECK((error->kind == olmo::ErrorKind::kInput && error->says("2^32 - 1")));
}
