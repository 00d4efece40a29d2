#include "report/parity.h"

#include <algorithm>
#include <fstream>

#include "evaluation_fixture.h"

#include "store/declarations.h"
#include "support/catch.h"
#include "support/simulated_side.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::mentions;
using olmo::test::SimulatedRun;

namespace {

/// A database of imported runs that a test adds to before it is compared.
class SideDb {
 public:
  explicit SideDb(const std::string& name)
      : name_(name), records_(folder_ / (name + ".db"), store::OpenMode::kCreate) {}

  std::string add(SimulatedRun run) {
    run.host = name_;
    return test::write_run(records_, run, name_ + std::to_string(++logs_) + ".csv");
  }
  void sql(const std::string& text) { records_.connection().execute(text); }
  store::RecordDatabase& records() { return records_; }
  [[nodiscard]] std::string path() const { return (folder_ / (name_ + ".db")).string(); }

 private:
  test::TemporaryDirectory folder_;
  std::string name_;
  store::RecordDatabase records_;
  int logs_ = 0;
};

/// A curve that falls, whose noise the seed decides.
std::vector<double> losses(std::uint64_t seed, std::size_t steps) {
  Normal normal(5, seed);
  std::vector<double> made;
  for (std::size_t i = 0; i < steps; ++i)
    made.push_back(2 + 5 / static_cast<double>(i + 1) + 0.03 * normal());
  return made;
}

ParityOptions of_kind(Kind kind) {
  ParityOptions options;
  options.kind = kind;
  return options;
}

std::vector<char> answers(std::size_t instances, std::size_t wrong) {
  std::vector<char> right(instances, 1);
  std::fill_n(right.begin(), wrong, char{0});
  return right;
}

/// Of independent trainings of 1,000 parameters, with a published deviation of their losses.
ParityReport compare_with_noise(SideDb& a, SideDb& b, std::int64_t tokens) {
  for (SideDb* side : {&a, &b}) side->sql("UPDATE runs SET n_parameters = 1000");
  const test::TemporaryDirectory folder;
  ParityOptions options = of_kind(Kind::kOutcome);
  options.noise = (folder / "noise.json").string();
  std::ofstream(options.noise) << R"({"source": "a table", "deviations": [
    {"metric": "loss", "parameters": 1000, "deviation": 0.003, "tokens": )"
                               << tokens << "}]}";
  return compare(a.path(), b.path(), options);
}

}  // namespace

TEST_CASE("a repeat counts by its evaluation that asked what the compared runs were asked",
          "[report]") {
  SideDb a("lumi"), b("jupiter");
  std::size_t wrong = 0;
  for (SideDb* side : {&a, &b}) {
    for (const std::uint64_t seed : {2U, 1U}) {  // the latest run of a database is compared
      const auto id =
          side->add({.losses = losses(seed, 100), .seed = seed, .tags = {"noise:seed"}});
      test::write_evaluation(side->records(), id, {{"arc", answers(50, ++wrong)}}, id);
      if (seed == 2) test::write_evaluation(side->records(), id, {{"arc", answers(20, 1)}}, id);
    }
  }
  const ParityReport report = compare(a.path(), b.path(), of_kind(Kind::kOutcome));
  const auto& tests = report.noise.tests;
  const auto found = std::find_if(tests.begin(), tests.end(), [](const Test& test) {
    return test.endpoint == Endpoint::kTask || test.endpoint == Endpoint::kMacro;
  });
  REQUIRE(found != tests.end());
  CHECK((found->k_a == 2 && found->k_b == 2));
}

TEST_CASE("a loss of too few points takes no published deviation, and it is said", "[report]") {
  SideDb a("lumi"), b("jupiter");
  a.add({.losses = losses(1, 12), .seed = 1});
  b.add({.losses = losses(2, 12), .seed = 2});
  const ParityReport report = compare_with_noise(a, b, 49'152);
  CHECK(mentions(report.caveats, "has too few values (n = "));
  CHECK(report.noise.tests.empty());
}

TEST_CASE("a published deviation stands in for no loss that repeats have tested", "[report]") {
  SideDb a("lumi"), b("jupiter");
  for (SideDb* side : {&a, &b})
    for (const std::uint64_t seed : {2U, 1U})
      side->add({.losses = losses(seed, 100), .seed = seed, .tags = {"noise:seed"}});
  CHECK(compare_with_noise(a, b, 409'600).noise.tests.size() == 1);
}

TEST_CASE("of what both sides declared the stricter margin counts, whichever is A", "[report]") {
  SideDb a("lumi"), b("jupiter");
  const auto in_a = a.add({.losses = losses(1, 100)}), in_b = b.add({.losses = losses(1, 100)});
  store::declare(a.records(), in_a, "ada", "loss=0.03");
  store::declare(b.records(), in_b, "bob", "loss=0.02");
  CHECK(compare(a.path(), b.path(), of_kind(Kind::kTrajectory)).margins.loss.value == 0.02);
  CHECK(compare(b.path(), a.path(), of_kind(Kind::kTrajectory)).margins.loss.value == 0.02);
}

TEST_CASE("independent trainings may read other data, of which no caveat is made", "[report]") {
  SideDb a("lumi"), b("jupiter");
  a.add({.losses = losses(1, 400), .seed = 1});
  b.add({.losses = losses(2, 400), .seed = 2});
  const auto caveats = [&](Kind kind) {
    return compare(a.path(), b.path(), of_kind(kind)).caveats;
  };
  const std::string parted = "noise from batch to batch";
  CHECK(mentions(caveats(Kind::kTrajectory), parted));
  CHECK_FALSE(mentions(caveats(Kind::kOutcome), parted));
}

TEST_CASE("a fact that is said to be equal contradicts nothing that one side tells", "[report]") {
  SideDb a("lumi"), b("jupiter");
  a.add({.losses = losses(1, 100)});
  b.add({.losses = losses(1, 100)});
  a.sql("UPDATE runs SET config = json_insert(config, '$.tokenizer.identifier', 'gpt2')");
  const std::string key = "tokenizer";
  const auto has = [&](const std::string& value) {
    ParityOptions options = of_kind(Kind::kTrajectory);
    options.assume[key] = value;
    const Gate gate = compare(a.path(), b.path(), options).gate;
    return std::any_of(gate.mismatches.begin(), gate.mismatches.end(),
                       [&](const Mismatch& mismatch) { return mismatch.what == key; });
  };
  CHECK_FALSE(has("equal"));
  CHECK(has("gpt-neox-20b"));
}
