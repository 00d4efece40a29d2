#include "report/training/repeats.h"

#include <cmath>

#include "core/hash.h"
#include "report/run_of_losses.h"
#include "report/stats/run_groups.h"
#include "report/stats/trajectory_statistics.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

constexpr std::int64_t kTokens = 8;  // of a step

/// A run of two steps that a place, a seed and its last loss tell from others.
store::RecordedRun run_of(const std::string& id, std::uint64_t seed, double loss,
                          const std::string& host, std::vector<std::string> tags = {}) {
  store::RecordedRun run = run_of_losses({9, loss}, kTokens);
  run.run_id = run.label = id;
  run.config = R"({"model":{"d_model":8}})";
  run.seed = seed;
  run.tags = std::move(tags);
  run.attempts.resize(1);
  run.attempts[0].environment = host.empty() ? "{}" : R"({"host":")" + host + R"("})";
  return run;
}

Candidate of_a(store::RecordedRun run) { return {std::move(run), true, false}; }
Candidate of_b(store::RecordedRun run) { return {std::move(run), false, true}; }
Candidate of_both(store::RecordedRun run) { return {std::move(run), true, true}; }

/// The second step.
const Stretch kLast{.from = 2 * kTokens, .to = 2 * kTokens, .tokens = {2 * kTokens}};

const store::RecordedRun kA = run_of("a", 1, 2.0, "lumi");
const store::RecordedRun kB = run_of("b", 1, 3.0, "jupiter");

const Repeat& about(const NoiseFloor& noise, const std::string& id) {
  for (const Repeat& repeat : noise.looked_at)
    if (repeat.run_id == id) return repeat;
  FAIL("not looked at: " << id);
  return noise.looked_at.front();
}

/// Three branches a side from states that both have.
std::vector<Candidate> three_branches() {
  std::vector<Candidate> branches;
  for (std::int64_t from = 100; from <= 300; from += 100) {
    for (const bool in_a : {true, false}) {
      auto branch = run_of((in_a ? "x" : "y") + std::to_string(from), 1, 0,
                           in_a ? "lumi" : "jupiter", {"noise"});
      const double depth = static_cast<double>(from) / 1000;
      branch.steps =
          run_of_losses(std::vector<double>(40, 3 - depth + (in_a ? 0 : depth / 100)), kTokens)
              .steps;
      for (std::size_t i = 0; i < branch.steps.size(); ++i) {
        branch.steps.step[i] += from;
        branch.steps.tokens[i] += kTokens * from;
        branch.steps.batch.push_back(static_cast<std::uint64_t>(branch.steps.step[i]));
      }
      branch.state_hashes[from] = {{"model", "weight", std::to_string(from)}};
      branch.attempts[0].resumed_from = "step" + std::to_string(from);
      branches.push_back(in_a ? of_a(branch) : of_b(branch));
    }
  }
  return branches;
}

}  // namespace

TEST_CASE("without repeats there is no noise floor, and it is said what to run", "[report]") {
  const NoiseFloor noise = noise_floor(kA, kB, {}, kLast);
  CHECK(noise.k_a == 1);
  CHECK(noise.values_a == std::vector<double>{2.0});
  CHECK(noise.values_b == std::vector<double>{3.0});
  CHECK((!noise.seed_deviation && !noise.equivalence && noise.tests.empty()));
  CHECK(noise.envelope.empty());
  CHECK(noise.to_run.find("At least 4 runs a side are needed (now 1 and 1)") == 0);
}

TEST_CASE("one database with the repeats of both sides gives each its own, by host", "[report]") {
  const NoiseFloor noise = noise_floor(kA, kB,
                                       {of_both(run_of("a2", 2, 2.1, "lumi", {"noise:seed"})),
                                        of_both(run_of("a3", 3, 2.2, "lumi", {"noise:seed"})),
                                        of_both(run_of("b2", 2, 3.1, "jupiter", {"noise:seed"})),
                                        of_both(run_of("x", 4, 9.0, "laptop", {"noise:seed"}))},
                                       kLast);
  CHECK(noise.values_a == std::vector<double>{2.0, 2.1, 2.2});
  CHECK(noise.values_b == std::vector<double>{3.0, 3.1});
  CHECK(about(noise, "a2").side == 'A');
  CHECK(about(noise, "b2").side == 'B');
  CHECK(about(noise, "b2").known_by == "host jupiter");
  CHECK_FALSE(about(noise, "x").taken);
  CHECK(about(noise, "x").left_out.find("laptop") != std::string::npos);
}

TEST_CASE("one database whose runs tell no place gives no repeat to a side, unless tagged",
          "[report]") {
  const auto a = run_of("a", 1, 2, "", {"side:lumi"}), b = run_of("b", 1, 3, "", {"side:mosaic"});
  const auto untagged = of_both(run_of("x", 2, 2.1, "", {"noise:seed"}));
  CHECK_FALSE(about(noise_floor(a, b, {untagged}, kLast), "x").taken);
  const auto tagged = of_both(run_of("x", 2, 2.1, "", {"noise:seed", "side:mosaic"}));
  CHECK(about(noise_floor(a, b, {tagged}, kLast), "x").side == 'B');
  CHECK(about(noise_floor(b, a, {tagged}, kLast), "x").side == 'A');
  const auto third = of_both(run_of("x", 2, 2.1, "", {"noise:seed", "side:laptop"}));
  CHECK_FALSE(about(noise_floor(a, b, {third}, kLast), "x").taken);
}

TEST_CASE("two databases give each side its own where nothing else tells", "[report]") {
  const auto a = run_of("a", 1, 2, ""), b = run_of("b", 1, 3, "");
  const NoiseFloor noise = noise_floor(
      a, b, {of_a(run_of("a2", 2, 2.1, "", {"noise"})), of_b(run_of("b2", 2, 3.1, "", {"repeat"}))},
      kLast);
  CHECK(noise.runs_a == std::vector<std::string>{"a2 (noise)"});
  CHECK(noise.runs_b == std::vector<std::string>{"b2 (repeat)"});
}

TEST_CASE("equal curves and equal chains are one run, which is named", "[report]") {
  auto chained = run_of("a4", 4, 2.4, "lumi", {"noise"});
  auto again = run_of("a5", 4, 2.4, "lumi", {"noise"});
  again.steps.loss[1] = 2.5;  // a chain that is equal is believed
  chained.last_chain = again.last_chain = "0123";
  const NoiseFloor noise =
      noise_floor(kA, kB,
                  {of_a(run_of("a2", 2, 2.0, "lumi", {"noise"})),
                   of_a(run_of("a3", 3, 2.3, "lumi", {"noise"})), of_a(chained), of_a(again)},
                  kLast);
  CHECK(noise.values_a == std::vector<double>{2.0, 2.3, 2.4});
  CHECK(about(noise, "a2").left_out == "bit for bit the run a, which counts once");
  CHECK(about(noise, "a5").left_out == "bit for bit the run a4, which counts once");
}

TEST_CASE("a log that lies in both databases under two names is no repeat of either", "[report]") {
  auto a = run_of("a", 1, 2, ""), b = run_of("b", 1, 3, "");
  auto copy_a = run_of("x", 2, 2.1, "", {"noise"}), copy_b = run_of("y", 2, 2.1, "", {"noise"});
  for (auto* run : {&a, &b, &copy_a, &copy_b}) run->imported = true;
  const NoiseFloor noise = noise_floor(a, b, {of_a(copy_a), of_b(copy_b)}, kLast);
  CHECK(noise.k_b == 1);
  CHECK(about(noise, "y").left_out.find("only the database tells") != std::string::npos);
}

TEST_CASE("a run of other settings, that ended before, or whose record is damaged is no repeat",
          "[report]") {
  auto other = run_of("other", 2, 2.1, "lumi", {"noise"});
  other.config = R"({"model":{"d_model":8},"optimizer":{"weight_decay":0.1}})";
  auto shorter = run_of("shorter", 3, 2.2, "lumi", {"noise"});
  shorter.steps = run_of_losses({9}, kTokens).steps;
  auto damaged = run_of("damaged", 4, 2.3, "lumi", {"noise"});
  damaged.damage.resize(1);
  const NoiseFloor noise = noise_floor(kA, kB, {of_a(other), of_a(shorter), of_a(damaged)}, kLast);
  CHECK(noise.k_a == 1);
  CHECK(about(noise, "other").left_out.find("settings") != std::string::npos);
  CHECK(about(noise, "shorter").left_out.find("0 points") != std::string::npos);
  CHECK(about(noise, "damaged").left_out.find("damaged") != std::string::npos);
}

TEST_CASE("a repeat of which a column was edited is no repeat, for the seed pairs it", "[report]") {
  auto edited = run_of("edited", 2, 2.1, "lumi", {"noise"});
  edited.imported = true;
  edited.config = R"({"seed": 1, "model": {"d_model": 8}})";
  const NoiseFloor noise = noise_floor(kA, kB, {of_a(edited)}, kLast);
  CHECK(noise.k_a == 1);
  CHECK(about(noise, "edited").left_out.find("runs.seed is 2, and its config says 1") !=
        std::string::npos);
}

TEST_CASE("repeats that are lost are told, and one that diverged caps the claim", "[report]") {
  auto shorter = run_of("shorter", 3, 2.2, "lumi", {"noise"});
  shorter.steps = run_of_losses({9}, kTokens).steps;
  auto diverged = shorter;
  diverged.run_id = "gone";
  diverged.status = "diverged";
  const auto fine = run_of("fine", 2, 2.1, "lumi", {"noise"});
  auto copy = fine;
  copy.run_id = "copy";
  const NoiseFloor noise = noise_floor(kA, kB,
                                       {of_a(shorter), of_a(diverged), of_a(fine), of_a(copy),
                                        of_both(run_of("nobody's", 5, 2.3, "laptop", {"noise"}))},
                                       kLast);
  REQUIRE(noise.lost.size() == 3);
  CHECK(noise.lost[0].find("Left out of the repeats of A: shorter (noise), as it has 0 points") ==
        0);
  CHECK(noise.lost[1].find("Diverged: the repeat gone (noise) of A in step 2.") == 0);
  CHECK(noise.lost[2].find("Left out of the repeats: nobody's (noise), as host laptop") == 0);
  CHECK(noise.caps == std::vector<std::string>{"the repeat gone (noise) of A diverged"});
}

TEST_CASE("repeats of another or an unknown setup cap the claim", "[report]") {
  const auto on = [](const std::string& id, double loss, const std::string& cpu) {
    auto run = run_of(id, 1, loss, "", {"noise", "side:lumi"});
    run.attempts[0].environment = R"({"host":"lumi","cpu":")" + cpu + R"("})";
    return run;
  };
  auto unknown = on("unknown", 2.2, "EPYC");
  unknown.imported = true;
  unknown.config = "{}";
  const NoiseFloor noise = noise_floor(
      on("a", 2.0, "EPYC"), kB,
      {of_a(on("same", 2.1, "EPYC")), of_a(on("other", 2.3, "Xeon")), of_a(unknown)}, kLast);
  CHECK(noise.runs_a.size() == 3);
  REQUIRE(noise.caps.size() == 2);
  CHECK(noise.caps[0].find("other (noise, side:lumi) of A ran on other hardware (Xeon) than the "
                           "compared run (EPYC)") != std::string::npos);
  CHECK(noise.caps[1].find("unknown (noise, side:lumi) of A tells no config") != std::string::npos);
}

TEST_CASE("a repeat whose record could not be checked against its config caps the claim",
          "[report]") {
  auto unread = run_of("a2", 2, 2.1, "lumi", {"noise:seed"});
  unread.chain_format = kChainFormat;
  unread.max_steps = 1000;
  unread.status = "running";  // d_model 8 is none that the other defaults allow
  const NoiseFloor noise = noise_floor(kA, kB, {of_a(unread)}, kLast);
  REQUIRE(noise.caps.size() == 1);
  CHECK(noise.caps[0].find("has a record that was not checked against its config") !=
        std::string::npos);
}

TEST_CASE("a run that goes on from a checkpoint is no repeat of a whole training", "[report]") {
  auto branch = run_of("x", 2, 2.1, "lumi", {"noise"});
  branch.attempts[0].resumed_from = "runs/a/step1";
  CHECK_FALSE(about(noise_floor(kA, kB, {of_a(branch)}, kLast), "x").taken);
}

TEST_CASE("seeds that both sides have are paired, which removes what they vary by", "[report]") {
  std::vector<Candidate> runs;
  const double losses[] = {0, 2.5, 1.7, 2.2};  // of seeds 2 to 4; chance of a seed: 0.5
  for (const std::uint64_t seed : {2U, 3U, 4U}) {
    const std::string n = std::to_string(seed);
    runs.push_back(of_a(run_of("a" + n, seed, losses[seed - 1], "lumi", {"noise:seed"})));
    const double noise = seed % 2 == 0 ? 0.001 : -0.001;
    runs.push_back(
        of_b(run_of("b" + n, seed, losses[seed - 1] + 0.01 + noise, "jupiter", {"noise:seed"})));
  }
  const NoiseFloor noise = noise_floor(kA, run_of("b", 1, 2.01, "jupiter"), runs, kLast);
  CHECK(noise.pairs == 4);
  REQUIRE(noise.tests.size() == 1);
  CHECK(noise.tests[0].method == "paired t, 4 seeds");
  CHECK(noise.tests[0].estimate == Approx(0.01 + 0.00025));
  CHECK(noise.tests[0].interval95.high < 0.012);
  CHECK(noise.to_run.empty());
}

TEST_CASE("other seeds on both sides are tested by Welch, each seed once", "[report]") {
  const NoiseFloor noise = noise_floor(kA, run_of("b", 11, 2.1, "jupiter"),
                                       {of_a(run_of("a2", 2, 2.2, "lumi", {"noise"})),
                                        of_a(run_of("a3", 2, 2.4, "lumi", {"noise:threads"})),
                                        of_b(run_of("b2", 12, 2.3, "jupiter", {"noise"}))},
                                       kLast);
  CHECK(noise.pairs == 0);
  CHECK(noise.k_a == 2);
  REQUIRE(noise.tests.size() == 1);
  CHECK(noise.tests[0].method == "Welch, 2 and 2 runs");
  CHECK(noise.tests[0].estimate == Approx(2.2 - (2.0 + 2.3) / 2));
}

TEST_CASE(
    "a margin from paired seeds rests on the seeds' own error, also where branches are tested",
    "[report]") {
  std::vector<Candidate> runs = {of_a(run_of("a2", 2, 2.2, "lumi", {"noise"})),
                                 of_b(run_of("b2", 2, 3.3, "jupiter", {"noise"}))};
  const NoiseFloor alone = noise_floor(kA, kB, runs, kLast);
  REQUIRE(alone.margin_deviation);
  CHECK(alone.margin_deviation->factor ==
        paired_margin_deviations(2, *alone.tests.at(0).standard_error, *alone.seed_deviation));
  // Their test takes the place of two repeats.
  for (Candidate& branch : three_branches()) runs.push_back(std::move(branch));
  const NoiseFloor both = noise_floor(kA, kB, runs, kLast);
  REQUIRE(both.branches.test);
  CHECK(both.tests.size() == 1);
  CHECK(both.margin_deviation->factor == alone.margin_deviation->factor);
}

TEST_CASE("repeats that all have one seed vary in something else, and count each", "[report]") {
  const NoiseFloor noise = noise_floor(kA, kB,
                                       {of_a(run_of("a2", 1, 2.2, "lumi", {"noise:threads"})),
                                        of_b(run_of("b2", 1, 3.2, "jupiter", {"noise:threads"}))},
                                       kLast);
  CHECK((noise.k_a == 2 && noise.k_b == 2 && noise.pairs == 0));
  CHECK(*noise.seed_deviation == Approx(std::sqrt(0.02)));
  CHECK(noise.p == 1.0 / 3);
}

TEST_CASE("which side is called A changes the sign of the estimate and nothing else", "[report]") {
  std::vector<Candidate> runs, swapped;
  for (const auto& [id, seed, loss, host] :
       {std::tuple("p", 2, 2.2, "lumi"), std::tuple("q", 3, 2.1, "lumi"),
        std::tuple("r", 2, 2.9, "jupiter"), std::tuple("s", 5, 3.2, "jupiter")}) {
    runs.push_back(of_both(run_of(id, static_cast<std::uint64_t>(seed), loss, host, {"noise"})));
  }
  const NoiseFloor one = noise_floor(kA, kB, runs, kLast), other = noise_floor(kB, kA, runs, kLast);
  REQUIRE((one.tests.size() == 1 && other.tests.size() == 1));
  CHECK(one.tests[0].estimate == -other.tests[0].estimate);
  CHECK(one.tests[0].interval90.low == Approx(-other.tests[0].interval90.high));
  CHECK(one.p == other.p);
  CHECK(one.values_a == other.values_b);
}

TEST_CASE("a mean is over the points that all runs have", "[report]") {
  auto a = kA, b = kB;
  a.steps = run_of_losses({9, 5, 4, 3}, kTokens).steps;
  b.steps = run_of_losses({9, 5, 4, 2}, kTokens).steps;
  const Stretch stretch{.from = 2 * kTokens, .to = 4 * kTokens, .tokens = {16, 24, 32}};
  CHECK(mean_loss(a, stretch) == 4);
  CHECK(mean_loss(b, {.from = 17, .to = 32, .tokens = {}}) == 3);
}

TEST_CASE("the envelope holds the largest difference of any repeat in each bin", "[report]") {
  auto a = kA, a2 = run_of("a2", 2, 0, "lumi", {"noise"}),
       b2 = run_of("b2", 2, 0, "jupiter", {"noise"});
  auto b = kB, a3 = run_of("a3", 3, 0, "lumi", {"noise"});
  a.steps = b.steps = run_of_losses({9, 5, 4}, kTokens).steps;
  a2.steps = run_of_losses({9, 5.25, 4}, kTokens).steps;
  a3.steps = run_of_losses({9, 4.5, 4}, kTokens).steps;
  b2.steps = run_of_losses({9.125, 5, 4}, kTokens).steps;
  const NoiseFloor noise = noise_floor(a, b, {of_a(a2), of_a(a3), of_b(b2)}, kLast);
  // Steps of 8, 16 and 24 tokens lie in bins of their own, 9, 12 and 13.
  CHECK(noise.envelope == std::vector<double>{0.125, 0.5, 0});
  REQUIRE(noise.envelope_tokens.size() == 3);
  CHECK(noise.envelope_tokens[0] == Approx(std::pow(10, 0.95)));
}

TEST_CASE("repeats whose decimals hide what moves tell nothing finer", "[report]") {
  // Each side's logs read 3.0 throughout its end, wherever within it they are.
  const auto logged = [](const std::string& id, std::uint64_t seed, double last) {
    std::vector<double> losses;
    for (int i = 0; i < 40; ++i)
      losses.push_back(i < 20 ? 9 - 0.1 * static_cast<double>(seed) : last);
    store::RecordedRun run = run_of_losses(losses, kTokens);
    run.run_id = run.label = id;
    run.seed = seed;
    run.tags = {"noise:seed"};
    run.imported = true;
    run.config = "{}";
    return run;
  };
  const Stretch end{.from = 21 * kTokens, .to = 40 * kTokens, .tokens = {}};
  std::vector<Candidate> candidates;
  for (std::uint64_t seed = 2; seed <= 4; ++seed) {
    candidates.push_back(of_a(logged("a" + std::to_string(seed), seed, 3.0)));
    candidates.push_back(of_b(logged("b" + std::to_string(seed), seed + 4, 3.0)));
  }
  NoiseFloor noise = noise_floor(logged("a1", 1, 3.0), logged("b1", 5, 3.0), candidates, end);
  REQUIRE(noise.tests.size() == 1);
  CHECK(noise.hidden == Approx(0.1));
  CHECK(noise.tests[0].interval90.high == Approx(0.1));
  CHECK(noise.tests[0].interval95.high == Approx(0.1));
  CHECK(noise.tests[0].hidden == Approx(0.1));
  CHECK(*noise.tests[0].p == 1);
  test_repeats(noise, 0.01);
  CHECK_FALSE(noise.equivalence->certified);
  test_repeats(noise, 0.2);
  CHECK(noise.equivalence->margin == 0.2);
  CHECK(noise.equivalence->certified);
}

TEST_CASE("four repeats a side are tested beside branches", "[report]") {
  std::vector<Candidate> runs = three_branches();
  for (const std::uint64_t seed : {2U, 3U, 4U}) {
    const std::string n = std::to_string(seed);
    const double loss = 0.1 * static_cast<double>(seed);
    runs.push_back(of_a(run_of("a" + n, seed, 2 + loss, "lumi", {"noise"})));
    runs.push_back(of_b(run_of("b" + n, seed, 3 + loss, "jupiter", {"noise"})));
  }
  CHECK(noise_floor(kA, kB, runs, kLast).tests.size() == 2);
}

TEST_CASE("a repeat has nine tenths of the points of the compared stretch", "[report]") {
  Stretch stretch{.from = kTokens, .to = 20 * kTokens, .tokens = {}};
  for (std::int64_t step = 1; step <= 20; ++step) stretch.tokens.push_back(step * kTokens);
  const auto with_steps = [](store::RecordedRun run, double loss, std::size_t gap) {
    run.steps = run_of_losses(std::vector<double>(20, loss), kTokens).steps;
    const auto cut = [gap](auto& column) {
      column.erase(column.begin() + 5, column.begin() + 5 + static_cast<std::ptrdiff_t>(gap));
    };
    cut(run.steps.step);
    cut(run.steps.tokens);
    cut(run.steps.loss);
    cut(run.steps.grad_norm);
    return run;
  };
  const auto a = with_steps(kA, 2.0, 0), b = with_steps(kB, 3.0, 0);
  const auto complete = with_steps(run_of("complete", 2, 0, "lumi", {"noise"}), 2.1, 2);
  const auto gappy = with_steps(run_of("gappy", 3, 0, "lumi", {"noise"}), 2.2, 3);
  const NoiseFloor noise = noise_floor(a, b, {of_a(complete), of_a(gappy)}, stretch);
  CHECK(about(noise, "complete").taken);
  CHECK(about(noise, "gappy").left_out == "it has 17 points of the compared stretch, which has 20");
}

TEST_CASE("a few seeds of many that both sides have pair nothing", "[report]") {
  const NoiseFloor noise = noise_floor(
      kA, kB,
      {of_a(run_of("a2", 2, 2.2, "lumi", {"noise"})), of_a(run_of("a3", 3, 2.1, "lumi", {"noise"})),
       of_b(run_of("b2", 2, 3.1, "jupiter", {"noise"})),
       of_b(run_of("b4", 4, 3.3, "jupiter", {"noise"}))},
      kLast);
  CHECK(noise.pairs == 0);
}
