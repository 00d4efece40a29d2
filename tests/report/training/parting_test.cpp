#include "report/training/parting.h"

#include <cmath>
#include <numeric>
#include <random>

#include "report/golden_file.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using Cause = Parting::Cause;

namespace {

std::vector<Parting> partings(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::int64_t> steps(a.size());
  std::iota(steps.begin(), steps.end(), 1);
  return find_partings({steps, a, b});
}

/// Logs of two vendors, as they are and with B's losses replaced from another pair's.
std::vector<Parting> partings_of_logs(const std::string& name) {
  const Json pair = golden_file("two_vendors.json").at(name);
  return partings(numbers(pair.at("cuda")), numbers(pair.at("rocm")));
}

/// Two trainings on the same batches, whose rounding grows to `chaos` (nats); from step `change` on
/// B reads other batches.
struct Trainings {
  std::vector<double> a, b;

  Trainings(std::size_t steps, double chaos, std::size_t change, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    constexpr double kNoise = 0.03, kMemory = 0.9;
    double apart = normal(random);
    for (std::size_t i = 0; i < steps; ++i) {
      const auto t = static_cast<double>(i + 1);
      const double base = 2.5 + 7 * std::pow(t, -0.4);
      const double batch = kNoise * normal(random), other = kNoise * normal(random);
      apart = kMemory * apart + std::sqrt(1 - kMemory * kMemory) * normal(random);
      const double growth =
          chaos * std::min(1.0, std::pow(2 * t / static_cast<double>(steps), 0.8));
      a.push_back(base + batch);
      b.push_back(base + (i + 1 >= change ? other : batch) + growth * apart);
    }
  }
};

constexpr std::size_t kNever = 1'000'000;

struct Numbered {
  std::vector<std::int64_t> positions;
  std::vector<double> losses;
};

/// Every `stride`th loss; the first of all has the number 1000 + shift.
Numbered numbered(const std::vector<double>& losses, std::int64_t shift, std::size_t stride = 1) {
  Numbered made;
  for (std::size_t i = 0; i < losses.size(); i += stride) {
    made.positions.push_back(1000 + static_cast<std::int64_t>(i) + shift);
    made.losses.push_back(losses[i]);
  }
  return made;
}

std::optional<Parting> shift_between(const Numbered& a, const Numbered& b, std::int64_t unit = 1) {
  return find_shift({a.positions, a.losses}, {b.positions, b.losses}, unit);
}

}  // namespace

TEST_CASE("logs of two vendors that were made together do not part", "[report]") {
  CHECK(partings_of_logs("regenerated_llama3").empty());
  CHECK(partings_of_logs("regenerated_qwen3_moe").empty());
}

TEST_CASE("a data order that is older than the other side's is found at its step", "[report]") {
  const auto found = partings_of_logs("stale_llama3");
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::kOtherData);
  CHECK((found[0].position >= 23 && found[0].position <= 25));
  CHECK(found[0].before > 0.99);
  CHECK(std::abs(found[0].after) < 0.5);
  CHECK(sentence_of(found[0], "step").find("other data") != std::string::npos);
}

TEST_CASE("rounding that grows is no parting, however long the curves", "[report]") {
  std::uint64_t seed = 0;
  for (const std::size_t steps : {40, 100, 1000, 5000})
    for (const double chaos : {0.0, 1e-4, 2e-3, 1e-2, 3e-2}) {
      if (steps <= 100 && chaos > 2e-3) continue;  // no log grew so fast
      for (int i = 0; i < 5; ++i) {
        const Trainings made(steps, chaos, kNever, ++seed);
        CAPTURE(steps, chaos, seed);
        CHECK(partings(made.a, made.b).empty());
      }
    }
}

TEST_CASE("a spike of one side is no other data", "[report]") {
  std::uint64_t seed = 300;
  for (const std::size_t steps : {100, 1000}) {
    for (const std::size_t place : {steps / 2, steps * 3 / 5, steps - 15}) {
      for (const std::size_t length : {1, 10}) {
        Trainings made(steps, 1e-4, kNever, ++seed);
        for (std::size_t i = place; i < place + length; ++i) made.b[i] += 0.5;
        CAPTURE(steps, place, length);
        CHECK(partings(made.a, made.b).empty());
        CHECK(partings(made.b, made.a).empty());
      }
    }
  }
  Trainings often(1000, 1e-4, kNever, ++seed);
  for (std::size_t i = 200; i < 1000; i += 150) often.b[i] += 0.5;
  CHECK(partings(often.a, often.b).empty());
}

TEST_CASE("other batches from a step on are found, within five steps of it", "[report]") {
  std::uint64_t seed = 100;
  for (const std::size_t steps : {100, 1000, 5000})
    for (const double chaos : {0.0, 1e-4, 2e-3})
      for (int i = 0; i < 5; ++i) {
        const std::size_t change = steps * 3 / 5;
        const Trainings made(steps, chaos, change, ++seed);
        const auto found = partings(made.a, made.b);
        CAPTURE(steps, chaos, seed);
        REQUIRE(found.size() == 1);
        CHECK(found[0].cause == Cause::kOtherData);
        CHECK(std::abs(found[0].position - static_cast<std::int64_t>(change)) <= 5);
      }
}

TEST_CASE("a loss that is computed in another way from a step on is a jump, a spike is none",
          "[report]") {
  Trainings made(400, 1e-4, kNever, 7);
  std::vector<double> spiked = made.b;
  for (std::size_t i = 200; i < 212; ++i) spiked[i] += 0.5;
  CHECK(partings(made.a, spiked).empty());
  for (std::size_t i = 250; i < 400; ++i) made.b[i] += 0.02;
  const auto found = partings(made.a, made.b);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::kSuddenJump);
  CHECK(found[0].position == 251);
  CHECK(found[0].after > 1e-3);
}

TEST_CASE("trainings on unrelated batches are called so", "[report]") {
  const Trainings made(400, 0, 1, 3);
  const auto found = partings(made.a, made.b);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::kUnrelated);
}

TEST_CASE("where sides part does not depend on which of them is A", "[report]") {
  const Trainings made(400, 2e-3, 200, 11);
  const auto one = partings(made.a, made.b), other = partings(made.b, made.a);
  REQUIRE((one.size() == 1 && other.size() == 1));
  CHECK(one[0].position == other[0].position);
  CHECK(one[0].cause == other[0].cause);
}

TEST_CASE("equal curves, and curves of few points, do not part", "[report]") {
  const Trainings made(400, 0, kNever, 5);
  CHECK(partings(made.a, made.a).empty());
  CHECK(partings({3, 2, 1}, {9, 9, 9}).empty());
  const std::vector<double> flat(100, 2.0);
  CHECK(partings(flat, flat).empty());
}

TEST_CASE("curves that number the same steps differently are called so, up to 100 apart",
          "[report]") {
  const Trainings made(400, 1e-4, kNever, 21);
  for (const std::int64_t shift : {1, -1, 7, 40, -40, 100, -100}) {
    CAPTURE(shift);
    const auto found = shift_between(numbered(made.a, 0), numbered(made.b, shift));
    REQUIRE(found);
    CHECK(found->cause == Cause::kShifted);
    CHECK(found->shift == shift);
    CHECK(found->before < 0.5);
    CHECK(found->after > 0.99);
    CHECK(sentence_of(*found, "step").find("number the same steps differently") !=
          std::string::npos);
  }
  const auto later = shift_between(numbered(made.a, 0), numbered(made.b, -40));
  CHECK(sentence_of(*later, "step").find("step N of A is set against step N - 40 of B") !=
        std::string::npos);
  CHECK(sentence_of(*later, "step")
            .ends_with("With --map step=COLUMN+40, runs import numbers the log of B as A's is; "
                       "with COLUMN-40, that "
                       "of A as B's."));
}

TEST_CASE("equal numbers, other batches and numbers further apart are no shift", "[report]") {
  const Trainings made(400, 1e-4, kNever, 21), other(400, 0, 1, 3);
  CHECK_FALSE(shift_between(numbered(made.a, 0), numbered(made.b, 0)));
  CHECK_FALSE(shift_between(numbered(other.a, 0), numbered(other.b, 0)));
  CHECK_FALSE(shift_between(numbered(made.a, 0), numbered(made.b, 101)));
  CHECK_FALSE(shift_between({}, numbered(made.b, 0)));
}

TEST_CASE("one spike of each side, on other batches, is no shift", "[report]") {
  Trainings other(400, 0, 1, 3);
  other.a[200] += 2;
  other.b[237] += 2;
  CHECK_FALSE(shift_between(numbered(other.a, 0), numbered(other.b, 0)));
}

TEST_CASE("a shift is found where a side logs every tenth step, and where none is in common",
          "[report]") {
  const Trainings made(2000, 1e-4, kNever, 22);
  const auto every_tenth = shift_between(numbered(made.a, 0), numbered(made.b, 3, 10));
  REQUIRE(every_tenth);
  CHECK(every_tenth->shift == 3);
  const auto apart = shift_between(numbered(made.a, 0, 10), numbered(made.b, 1, 10));
  REQUIRE(apart);
  CHECK(apart->shift == 1);
  CHECK(apart->before == 0);
}

TEST_CASE("numbers of tokens are apart by whole steps", "[report]") {
  const Trainings made(400, 1e-4, kNever, 21);
  Numbered a = numbered(made.a, 0), b = numbered(made.b, 2);
  for (Numbered* one : {&a, &b})
    for (auto& position : one->positions) position *= 4096;
  const auto found = shift_between(a, b, 4096);
  REQUIRE(found);
  CHECK(found->shift == 2 * 4096);
}

TEST_CASE("a steep beginning does not hide that curves number the same steps differently",
          "[report]") {
  Trainings made(100, 1e-4, kNever, 22);
  for (std::size_t i = 0; i < 100; ++i)
    for (auto* losses : {&made.a, &made.b})
      (*losses)[i] += 40 * std::exp(-static_cast<double>(i) / 5);
  const auto found = shift_between(numbered(made.a, 0), numbered(made.b, 1));
  REQUIRE(found);
  CHECK(found->shift == 1);
}

TEST_CASE("other noise that ends again is no other data", "[report]") {
  Trainings made(1000, 1e-4, kNever, 23);
  const Trainings other(1000, 1e-4, 1, 24);
  std::copy(other.b.begin() + 400, other.b.begin() + 460, made.b.begin() + 400);
  CHECK(partings(made.a, made.b).empty());
}
