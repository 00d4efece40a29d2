#include "core/pcg64.h"

#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "core/json.h"
#include "support/catch.h"

namespace {

using olmo::Json;
using olmo::Pcg64;
using olmo::SeedSequence;

const Json& golden() {
  static const Json kGolden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("primitives");
  return kGolden;
}

std::uint64_t u64(const Json& text) { return std::stoull(text.get<std::string>()); }

}  // namespace

TEST_CASE("a seed spreads over 32- and 64-bit words as NumPy's SeedSequence spreads it", "[core]") {
  for (const Json& row : golden().at("seeds")) {
    INFO("seed " << row.at("seed"));
    const SeedSequence sequence(u64(row.at("seed")));
    std::vector<std::uint32_t> narrow(8);
    sequence.generate(std::span<std::uint32_t>(narrow));
    CHECK(narrow == row.at("state_u32").get<std::vector<std::uint32_t>>());
    std::vector<std::uint64_t> wide(4);
    sequence.generate(std::span<std::uint64_t>(wide));
    for (std::size_t i = 0; i < wide.size(); ++i) CHECK(wide[i] == u64(row.at("state_u64")[i]));
  }
}

TEST_CASE("raw draws equal NumPy's PCG64", "[core]") {
  for (const Json& row : golden().at("seeds")) {
    INFO("seed " << row.at("seed"));
    Pcg64 random(u64(row.at("seed")));
    for (const Json& expected : row.at("raw")) CHECK(random.next_u64() == u64(expected));
  }
}

TEST_CASE("a 64-bit draw gives its low half first, then its high half", "[core]") {
  Pcg64 halves(6198);
  const std::uint64_t whole = Pcg64(6198).next_u64();
  CHECK(halves.next_u32() == static_cast<std::uint32_t>(whole));
  CHECK(halves.next_u32() == static_cast<std::uint32_t>(whole >> 32));
}

TEST_CASE("shuffles equal NumPy's Generator.shuffle", "[core]") {
  for (const Json& row : golden().at("shuffles")) {
    INFO("seed " << row.at("seed") << ", n " << row.at("n"));
    std::vector<std::uint32_t> values(row.at("n").get<std::size_t>());
    std::iota(values.begin(), values.end(), 0U);
    Pcg64(u64(row.at("seed"))).shuffle(values);
    const auto first = row.at("first").get<std::vector<std::uint32_t>>();
    CHECK(std::vector<std::uint32_t>(
              values.begin(), values.begin() + static_cast<std::ptrdiff_t>(first.size())) == first);
    CHECK(olmo::sha256(std::as_bytes(std::span(values))).hex() ==
          row.at("sha256").get<std::string>());
  }
}

TEST_CASE("an interval includes both ends and nothing beyond", "[core]") {
  Pcg64 random(3);
  std::vector<int> seen(6, 0);
  for (int i = 0; i < 600; ++i) ++seen.at(random.interval(5));
  for (const int count : seen) CHECK(count > 50);
  CHECK(random.interval(0) == 0);
}
