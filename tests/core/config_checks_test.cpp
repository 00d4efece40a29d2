#include "core/config_checks.h"

#include <array>
#include <limits>

#include "support/catch.h"

using olmo::ConfigChecks;

TEST_CASE("a check that fails names the key with its group, and says so", "[core]") {
  ConfigChecks checks("model.");
  CHECK(checks.between("n_layers", 2, 1, 4));
  CHECK_FALSE(checks.between("n_layers", 5, 1, 4));
  CHECK(checks.between("n_kv_heads", std::optional<std::int64_t>(), 1, 4));
  CHECK_FALSE(checks.at_least("init_std", -0.5, 0));
  const auto problems = checks.take();
  CHECK(olmo::sentences_of(problems) ==
        "`model.n_layers` must lie in 1..4, got 5; `model.init_std` must be at least 0, got -0.5");
  CHECK_THROWS_WITH(olmo::require_none(problems), olmo::sentences_of(problems));
  CHECK_NOTHROW(olmo::require_none({}));
}

TEST_CASE("a number must be positive in fp32, too", "[core]") {
  ConfigChecks checks;
  for (const double good : {1e-30, 1.0, 3e38}) CHECK(checks.positive("eps", good));
  for (const double bad : {0.0, -1.0, 1e-50, 1e39, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()})
    CHECK_FALSE(checks.positive("eps", bad));
  CHECK(checks.positive("eps", std::optional<double>()));
  CHECK(checks.take().size() == 6);
}

TEST_CASE("a word of OLMo's that we cannot run blocks a start only", "[core]") {
  constexpr std::array<std::string_view, 2> kWords = {"one", "two"};
  constexpr std::array<std::string_view, 1> kOthers = {"three"};
  ConfigChecks checks;
  CHECK(checks.one_of("kind", "two", kWords, kOthers));
  CHECK_FALSE(checks.one_of("kind", "three", kWords, kOthers));
  CHECK_FALSE(checks.one_of("kind", "four", kWords, kOthers));
  const auto problems = checks.take();
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].blocks_start);
  CHECK(problems[0].message == "is `three`, which is not supported here: expected `one`, `two`");
  CHECK_FALSE(problems[1].blocks_start);
  CHECK(problems[1].message == "is `four`, expected one of one, two");
}
