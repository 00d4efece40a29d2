#include "core/compute/random.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "support/catch.h"

using olmo::Isa;
using olmo::Json;
using olmo::Pcg64;
using olmo::PhiloxStream;
using olmo::Policy;
using olmo::SeedSequence;

namespace {

std::vector<float> draw(const PhiloxStream& stream, std::uint64_t first, std::size_t count,
                        std::optional<double> cutoff, Isa isa = olmo::best_isa()) {
  Policy policy;
  policy.isa = isa;
  std::vector<float> values(count);
  stream.fill_normal(policy, first, 1.0, cutoff, values);
  return values;
}

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double std_of(const std::vector<float>& values) {
  const double mean = mean_of(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double upper_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

const Json& golden() {
  static const Json kGolden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("primitives");
  return kGolden;
}

std::uint64_t u64(const Json& text) { return std::stoull(text.get<std::string>()); }

}  // namespace

TEST_CASE("philox4x32-10 gives Random123's known answers", "[core]") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(olmo::philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
        Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
  CHECK(olmo::philox4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
        Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
  CHECK(olmo::philox4x32_10({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U},
                            {0xa4093822U, 0x299f31d0U}) ==
        Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U});
}

TEST_CASE("a stream's numbers are pinned", "[core]") {
  const PhiloxStream stream(6198, "transformer.wte.weight");
  CHECK(stream.word(0) == 0x157ff128U);
  CHECK(stream.word(1) == 0xb7d2d25cU);
  CHECK(stream.word((std::uint64_t{1} << 40) + 3) == 0xafa9a4f0U);
}

TEST_CASE("a normal number depends on its index, not on where the drawing began", "[core]") {
  const PhiloxStream stream(1, "w");
  const auto whole = draw(stream, 0, 2000, 3.0);
  for (const std::size_t first : {1U, 3U, 255U, 256U, 257U, 511U, 1023U}) {
    for (const std::size_t count : {1U, 2U, 255U, 256U, 600U}) {
      const auto part = draw(stream, first, count, 3.0);
      REQUIRE(
          std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
    }
  }
}

TEST_CASE("normal numbers have the same bits on every instruction set", "[core]") {
  const PhiloxStream stream(2, "w");
  const auto plain = draw(stream, 0, 1 << 16, std::nullopt, Isa::kPlain);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= olmo::best_isa()) CHECK(draw(stream, 0, 1 << 16, std::nullopt, isa) == plain);
  }
}

TEST_CASE("normal numbers have mean 0, standard deviation 1 and normal tails", "[core]") {
  const std::size_t count = 1 << 20;
  const auto values = draw(PhiloxStream(3, "w"), 0, count, std::nullopt);
  const double error =
      5.0 / std::sqrt(static_cast<double>(count));  // five standard errors of a mean
  CHECK(std::abs(mean_of(values)) < error);
  CHECK(std::abs(std_of(values) - 1.0) < error);
  for (const double z : {0.1, 0.5, 1.0, 2.0, 3.0, 4.0}) {
    const auto beyond = static_cast<double>(
        std::count_if(values.begin(), values.end(), [z](float value) { return value > z; }));
    const double expected = upper_tail(z) * static_cast<double>(count);
    CHECK(std::abs(beyond - expected) < 5.0 * std::sqrt(expected) + 1.0);
  }
}

TEST_CASE(
    "truncated normal numbers stay within the cutoff and keep the truncated distribution's spread",
    "[core]") {
  const std::size_t count = 1 << 20;
  for (const double cutoff : {0.5, 1.0, 3.0}) {
    const auto values = draw(PhiloxStream(4, "w"), 0, count, cutoff);
    const auto largest = *std::max_element(
        values.begin(), values.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
    CHECK(std::abs(largest) <= static_cast<float>(cutoff));
    CHECK(std::abs(largest) > 0.98 * cutoff);
    const double density = std::exp(-0.5 * cutoff * cutoff) / std::sqrt(2.0 * M_PI);
    const double expected =
        std::sqrt(1.0 - 2.0 * cutoff * density / (1.0 - 2.0 * upper_tail(cutoff)));
    CHECK(std::abs(std_of(values) - expected) < 0.005);
    CHECK(std::abs(mean_of(values)) < 0.005);
  }
}

TEST_CASE("a normal number is the inverse distribution function of its word", "[core]") {
  const PhiloxStream stream(5, "w");
  const auto values = draw(stream, 0, 20000, std::nullopt);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t word = stream.word(i);
    const double tail = 0.5 - (static_cast<double>(word & 0x7FFFFFFFU) + 0.5) * 0x1p-32;
    const double z = std::abs(static_cast<double>(values[i]));
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2.0 * M_PI);
    const double error = (upper_tail(z) - tail) / density;  // first order of the error of z
    REQUIRE(std::abs(error) < 4e-7 * z + 1e-12);
    REQUIRE((values[i] < 0.0F) == (word >> 31 == 1U));
  }
}

TEST_CASE("streams of other names and seeds are uncorrelated", "[core]") {
  const std::size_t count = 1 << 16;
  const auto one = draw(PhiloxStream(6, "a"), 0, count, std::nullopt);
  for (const auto& stream : {PhiloxStream(6, "b"), PhiloxStream(7, "a")}) {
    const auto other = draw(stream, 0, count, std::nullopt);
    const double product = std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
    CHECK(std::abs(product) < 5.0 * std::sqrt(static_cast<double>(count)));
  }
}

TEST_CASE("an impossible spread is a usage error", "[core]") {
  std::vector<float> out(4);
  const PhiloxStream stream(8, "w");
  CHECK_THROWS_AS(stream.fill_normal(Policy{}, 0, -1.0, std::nullopt, out), olmo::Error);
  CHECK_THROWS_AS(stream.fill_normal(Policy{}, 0, NAN, std::nullopt, out), olmo::Error);
  CHECK_THROWS_AS(stream.fill_normal(Policy{}, 0, 1.0, 0.0, out), olmo::Error);
}

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

TEST_CASE("a shuffle in parts is the shuffle, wherever it is parted", "[core]") {
  std::vector<std::uint32_t> whole(1000);
  std::iota(whole.begin(), whole.end(), 0U);
  Pcg64(7).shuffle(whole);
  for (const std::size_t part : {1U, 31U, 32U, 33U, 500U, 2000U}) {
    std::vector<std::uint32_t> parts(1000);
    std::iota(parts.begin(), parts.end(), 0U);
    Pcg64 random(7);
    for (std::size_t size = parts.size(); size > 1;) {
      const std::size_t end = size > part ? size - part : 1;
      random.shuffle_down_to(std::span(parts).first(size), end);
      size = end;
    }
    CHECK(parts == whole);
  }
}

TEST_CASE("an interval includes both ends and nothing beyond", "[core]") {
  Pcg64 random(3);
  std::vector<int> seen(6, 0);
  for (int i = 0; i < 600; ++i) ++seen.at(random.interval(5));
  for (const int count : seen) CHECK(count > 50);
  CHECK(random.interval(0) == 0);
}
