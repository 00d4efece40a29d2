// Reports on databases whose truth is known: how often a verdict is wrong, and whether `report
// plan` says how often it is reached. The library gives most reports, the program a sample of them.
// OLMO_SIMULATIONS=N takes N times as many (scripts/verdict_simulation.sh).
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "report/parity.h"
#include "report/plan.h"
#include "report/stats/paired_outcomes.h"
#include "report/stats/run_groups.h"
#include "report/stats/series_mean.h"
#include "support/catch.h"
#include "support/simulated_side.h"

namespace olmo::test {
namespace {

using report::Claim;
using report::ParityOptions;
using report::ParityReport;
using report::Scope;
using report::Verdict;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// Two databases that are compared, or one with both sides.
struct Sides {
  std::string a, b;
};

/// A folder of databases; each begins as a copy of one that is empty, in place of an earlier one.
class Folder : public Scene {
 public:
  Folder() { store::RecordDatabase(empty(), store::OpenMode::kCreate); }

  [[nodiscard]] store::RecordDatabase database(const std::string& name) const {
    fs::copy_file(empty(), path(name), fs::copy_options::overwrite_existing);
    return store::RecordDatabase(path(name), store::OpenMode::kCreate);
  }
  [[nodiscard]] fs::path path(const std::string& name) const { return *this / (name + ".db"); }

 private:
  [[nodiscard]] fs::path empty() const { return *this / "empty.db"; }
};

const Claim* claim_of(const ParityReport& report, Scope scope) {
  for (const Claim& claim : report.claims)
    if (claim.scope == scope) return &claim;
  return nullptr;
}

/// What many reports of one kind of truth came to.
struct Tally {
  std::uint64_t reports = 0, equivalent = 0, different = 0, tested = 0, covered = 0, swaps = 0,
                unlike_swaps = 0;
  std::map<std::string, std::uint64_t> verdicts;

  [[nodiscard]] double share(std::uint64_t count, std::uint64_t of) const {
    return static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(1, of));
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& [verdict, count] : verdicts)
      text += std::to_string(count) + " " + verdict + ", ";
    return text + "covered " + std::to_string(covered) + " of " + std::to_string(tested);
  }
};

/// Three standard errors above a share that may not be exceeded.
double at_most(double share, std::uint64_t count) {
  return share + 3 * std::sqrt(share * (1 - share) / static_cast<double>(count));
}

/// One kind of truth: how a pair is made, what the report is asked, and what is true of it.
struct Scenario {
  std::string name;
  Scope scope = Scope::kModels;
  double truth = 0;  ///< of the test of the endpoint, in its unit
  std::function<Sides(const Folder&, std::uint64_t sample)> make;
  ParityOptions options = {};
  report::Endpoint endpoint = report::Endpoint::kLoss;
};

/// What the records cannot tell is said to be equal, as a user would who knows.
void assume_all(ParityOptions& options, const ParityReport& report) {
  for (const auto& fact : report.gate.unknown) options.assume[fact.key] = "equal";
}

Tally simulate(const Scenario& scenario, std::uint64_t samples) {
  Tally tally;
  ParityOptions options = scenario.options;
  const Folder folder;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const Sides sides = scenario.make(folder, sample);
    if (sample == 0) assume_all(options, report::compare(sides.a, sides.b, options));
    const ParityReport report = report::compare(sides.a, sides.b, options);
    ++tally.reports;
    ++tally.verdicts[to_string(report.verdict)];
    if (sample == 0) UNSCOPED_INFO(scenario.name << ": " << report.reason);
    if (sample % 10 == 0) {
      ++tally.swaps;
      tally.unlike_swaps += report::compare(sides.b, sides.a, options).verdict != report.verdict;
    }
    const Claim* claim = claim_of(report, scenario.scope);
    if (claim == nullptr) continue;
    tally.equivalent +=
        claim->verdict == Verdict::kEquivalent || claim->verdict == Verdict::kDifferentNegligible;
    tally.different +=
        claim->verdict == Verdict::kDifferent || claim->verdict == Verdict::kDifferentNegligible;
    const auto test = std::find_if(claim->tests.begin(), claim->tests.end(), [&](const auto& one) {
      return one.endpoint == scenario.endpoint && !one.too_few;
    });
    if (test == claim->tests.end()) continue;
    const auto& interval = test->interval95;
    ++tally.tested;
    tally.covered += interval.low <= scenario.truth && scenario.truth <= interval.high;
  }
  if (simulations() > 1) std::cout << scenario.name << ": " << tally.text() << std::endl;
  return tally;
}

/// A loss that falls, with a noise of the batches.
std::vector<double> falling(std::uint64_t sample, std::size_t n, double deviation) {
  Normal normal(41, sample);
  std::vector<double> losses;
  for (std::size_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(n);
    losses.push_back(2.5 + 3 * std::exp(-8 * t) + deviation * normal());
  }
  return losses;
}

/// Two trainings of one start and data, in one database: the difference grows to `truth` plus an
/// autoregressive noise.
Sides trajectory(const Folder& folder, std::uint64_t sample, std::size_t n, double rho,
                 double deviation, double truth) {
  SimulatedRun a{.losses = falling(sample, n, 0.05), .host = "lumi"}, b = a;
  b.host = "mosaic";
  const auto noise = autoregression(1000 + sample, n, rho);
  for (std::size_t i = 0; i < n; ++i) {
    const double grown = std::min(1.0, static_cast<double>(i) / (0.4 * static_cast<double>(n)));
    b.losses[i] += grown * (truth + deviation * noise[i]);
  }
  auto records = folder.database("both");
  const auto id_a = write_run(records, a, "a.csv"), id_b = write_run(records, b, "b.csv");
  const auto path = folder.path("both").string();
  return {path + ":" + id_a, path + ":" + id_b};
}

struct Trainings {
  int runs = 4;  ///< a side
  double run_deviation = 0.004;
  double truth = 0;
  std::size_t steps = 60;
  bool one_database = false;
  bool clones = false;  ///< one run, recorded as often
  bool gaps = false;
  std::vector<std::size_t> evaluated = {};  ///< sizes of the tasks that each run is evaluated on
  double fewer_right = 0;                   ///< share of the answers by which B is worse
  std::size_t shorter = 0;                  ///< by so many steps B's runs end earlier
};

/// A run's answers: of instances of which six in ten are easy, a tenth comes out otherwise by
/// chance, and `fewer` of all turn wrong.
std::vector<SimulatedTask> answers(Normal& normal, const std::vector<std::size_t>& sizes,
                                   double fewer) {
  std::vector<SimulatedTask> tasks;
  for (const std::size_t size : sizes) {
    tasks.push_back({"task" + std::to_string(tasks.size()), std::vector<char>(size)});
    for (std::size_t i = 0; i < size; ++i) {
      const bool easy = i % 5 < 3;
      tasks.back().right[i] = normal.uniform() < (easy ? 0.9 - fewer / 0.6 : 0.1);
    }
  }
  return tasks;
}

/// Independent trainings with seeds, the first of each side to be compared, the others tagged.
Sides trainings(const Folder& folder, std::uint64_t sample, const Trainings& what) {
  Normal normal(42, sample);
  Sides sides;
  for (const bool in_b : {false, true}) {
    const std::string name = what.one_database ? "both" : in_b ? "b" : "a";
    auto records = what.one_database && in_b
                       ? store::RecordDatabase(folder.path(name), store::OpenMode::kCreate)
                       : folder.database(name);
    SimulatedRun run{.host = in_b ? "mosaic1" : "lumi1"};
    for (int k = 0; k < what.runs; ++k) {
      if (k == 0 || !what.clones) {
        run.seed = sample * 100 + static_cast<std::uint64_t>(k) + (in_b ? 50 : 0);
        const double offset = what.run_deviation * normal() + (in_b ? what.truth : 0);
        // The noise of the batches is small beside that of the runs.
        run.losses = falling(run.seed, what.steps, 0.0002);
        run.losses.resize(what.steps - (in_b ? what.shorter : 0));
        for (std::size_t i = 0; i < run.losses.size(); ++i)
          run.losses[i] = what.gaps && i % 7 == 3 ? kMissing : run.losses[i] + offset;
      }
      run.tags = k == 0 ? std::vector<std::string>{} : std::vector<std::string>{"noise:seed"};
      const auto id = write_run(records, run, name + std::to_string(k) + ".csv");
      if (!what.evaluated.empty())
        write_evaluation(records, name + " weights " + std::to_string(k),
                         answers(normal, what.evaluated, in_b ? what.fewer_right : 0), id);
      if (k == 0) (in_b ? sides.b : sides.a) = folder.path(name).string() + ":" + id;
    }
  }
  return sides;
}

/// Two models' answers: a share `discordant` flips, and B gains `truth` more of them than it loses.
Sides evaluations(const Folder& folder, std::uint64_t sample, const std::vector<std::size_t>& sizes,
                  double discordant, double truth) {
  Normal normal(43, sample);
  std::vector<SimulatedTask> a, b;
  for (std::size_t task = 0; task < sizes.size(); ++task) {
    a.push_back({"task" + std::to_string(task), std::vector<char>(sizes[task])});
    b.push_back(a.back());
    for (std::size_t i = 0; i < sizes[task]; ++i) {
      const double draw = normal.uniform();
      const bool gained = draw < (discordant + truth) / 2;
      const bool flips = draw < discordant;
      const bool right = flips ? gained : normal.uniform() < 0.6;
      b.back().right[i] = right;
      a.back().right[i] = flips ? !gained : right;
    }
  }
  for (const auto& [name, tasks] : {std::pair{"a", &a}, {"b", &b}}) {
    auto records = folder.database(name);
    write_evaluation(records, std::string("weights ") + name, *tasks);
  }
  return {folder.path("a").string(), folder.path("b").string()};
}

ParityOptions outcome(const std::string& margins = "") {
  ParityOptions options;
  options.kind = report::Kind::kOutcome;
  if (!margins.empty()) options.margins = report::parse_margins(margins);
  return options;
}

ParityOptions one_trajectory(const std::string& margins) {
  ParityOptions options = outcome(margins);
  options.kind = report::Kind::kTrajectory;
  return options;
}

void check_truth(const Scenario& scenario, const Tally& tally, bool at_margin) {
  INFO(scenario.name << ": " << tally.text());
  CHECK(tally.unlike_swaps == 0);
  if (at_margin)
    CHECK(tally.share(tally.equivalent, tally.reports) <= at_most(0.05, tally.reports));
  else
    CHECK(tally.share(tally.different, tally.reports) <= at_most(0.05, tally.reports));
  if (tally.tested > 0)
    CHECK(tally.share(tally.covered, tally.tested) >= 1 - at_most(0.07, tally.tested));
}

std::string text_of(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

TEST_CASE(
    "two models of one trajectory are certified at the margin, and called different without "
    "a difference, in at most one case of twenty",
    "[cli][simulation]") {
  struct Process {
    std::size_t steps;
    double rho;
    std::uint64_t samples;
  };
  constexpr double kMargin = 0.01, kDeviation = 0.004;
  for (const Process& process :
       {Process{40, 0, 60}, Process{40, 0.9, 60}, Process{356, 0.5, 40}, Process{356, 0.9, 40},
        Process{3000, 0.9, 20}, Process{20'000, 0.9, 2}}) {
    for (const double truth : {0.0, kMargin}) {
      const Scenario scenario{
          .name = "trajectory of " + std::to_string(process.steps) + " steps, coefficient " +
                  text_of(process.rho) + ", difference " + text_of(truth),
          .scope = Scope::kModels,
          .truth = truth,
          .make =
              [&](const Folder& folder, std::uint64_t sample) {
                return trajectory(folder, sample, process.steps, process.rho, kDeviation, truth);
              },
          .options = one_trajectory("loss=" + text_of(kMargin))};
      check_truth(scenario, simulate(scenario, process.samples * simulations()), truth > 0);
    }
  }
}

TEST_CASE(
    "setups are certified at the margin, and called different without a difference, in at "
    "most one case of twenty",
    "[cli][simulation]") {
  struct Setting {
    Trainings what;
    const char* margins;  ///< empty: from the repeats
    double margin;
  };
  for (const Setting& setting :
       {Setting{{.runs = 1}, "loss=0.01", 0.01},
        Setting{{.runs = 2, .run_deviation = 0.002}, "loss=0.01", 0.01},
        Setting{{.runs = 4, .run_deviation = 0.004}, "loss=0.01", 0.01},
        Setting{{.runs = 4, .run_deviation = 0.004, .one_database = true}, "", 0.008},
        Setting{{.runs = 6, .run_deviation = 0.004, .gaps = true}, "", 0.008},
        Setting{{.runs = 8, .run_deviation = 0.008, .shorter = 12}, "", 0.016},
        Setting{{.runs = 4, .run_deviation = 0}, "loss=0.01", 0.01}}) {
    for (const bool at_margin : {false, true}) {
      Trainings what = setting.what;
      what.truth = at_margin ? setting.margin : 0;
      const Scenario scenario{
          .name = std::to_string(what.runs) + " runs a side, deviation " +
                  text_of(what.run_deviation) + ", difference " + text_of(what.truth) +
                  (what.one_database ? ", one database" : "") + (what.gaps ? ", gaps" : "") +
                  (what.shorter > 0 ? ", unequal lengths" : ""),
          .scope = Scope::kSetups,
          .truth = what.truth,
          .make = [&](const Folder& folder,
                      std::uint64_t sample) { return trainings(folder, sample, what); },
          .options = outcome(setting.margins)};
      check_truth(scenario, simulate(scenario, 40 * simulations()), at_margin);
    }
  }
}

TEST_CASE(
    "setups whose runs were evaluated are certified by scores at the margin in at most one "
    "case of twenty",
    "[cli][simulation]") {
  for (const double fewer : {0.0, 0.09}) {
    const Trainings what{
        .runs = 4, .run_deviation = 0.002, .evaluated = {60, 40, 50}, .fewer_right = fewer};
    const Scenario scenario{
        .name = "4 evaluated runs a side, " + text_of(100 * fewer) + " pp fewer right",
        .scope = Scope::kSetups,
        .truth = -100 * fewer,
        .make = [&](const Folder& folder,
                    std::uint64_t sample) { return trainings(folder, sample, what); },
        .options = outcome("loss=0.02,macro=9"),
        .endpoint = report::Endpoint::kMacro};
    const Tally tally = simulate(scenario, 30 * simulations());
    check_truth(scenario, tally, fewer > 0);
    CHECK(tally.tested == tally.reports);
    if (fewer == 0) CHECK(tally.equivalent > tally.reports / 2);
  }
}

TEST_CASE("a run that is recorded four times says nothing about the setups", "[cli][simulation]") {
  for (const bool one_database : {false, true}) {
    const Scenario scenario{.name = "clones",
                            .scope = Scope::kSetups,
                            .truth = 0,
                            .make =
                                [&](const Folder& folder, std::uint64_t sample) {
                                  return trainings(
                                      folder, sample,
                                      {.runs = 4, .one_database = one_database, .clones = true});
                                },
                            .options = outcome()};
    const Tally tally = simulate(scenario, 20 * simulations());
    INFO(tally.text());
    CHECK(tally.equivalent == 0);
    CHECK(tally.different == 0);
    CHECK(tally.unlike_swaps == 0);
  }
}

TEST_CASE(
    "models are certified by their answers at the margin, and called different without a "
    "difference, in at most one case of twenty",
    "[cli][simulation]") {
  const std::vector<std::size_t> sizes = {200, 150, 250};
  struct Setting {
    double discordant, margin;  ///< fractions
  };
  for (const Setting& setting : {Setting{0.001, 0.001}, Setting{0.01, 0.01}, Setting{0.05, 0.03}}) {
    for (const double truth : {0.0, setting.margin}) {
      const Scenario scenario{
          .name = text_of(100 * setting.discordant) + " % of answers flip, difference " +
                  text_of(100 * truth) + " pp",
          .scope = Scope::kModels,
          .truth = 100 * truth,
          .make =
              [&](const Folder& folder, std::uint64_t sample) {
                return evaluations(folder, sample, sizes, setting.discordant, truth);
              },
          .options = outcome("macro=" + text_of(100 * setting.margin)),
          .endpoint = report::Endpoint::kMacro};
      check_truth(scenario, simulate(scenario, 40 * simulations()), truth > 0);
    }
  }
}

TEST_CASE("setups and models are certified as often as the plan says", "[cli][simulation]") {
  const std::uint64_t samples = 60 * simulations();
  const auto certified = [&](const Scenario& scenario) {
    const Tally tally = simulate(scenario, samples);
    UNSCOPED_INFO(scenario.name << ": " << tally.text());
    return tally.share(tally.equivalent, tally.reports);
  };
  const auto near = [&](double planned) {
    // Three points, and three standard errors of the simulation.
    return Approx(planned).margin(
        0.03 + 3 * std::sqrt(planned * (1 - planned) / static_cast<double>(samples)));
  };
  for (const auto& [runs, deviation] : {std::pair{4, 0.004}, {6, 0.004}}) {
    const Trainings what{.runs = runs, .run_deviation = deviation};
    const Scenario scenario{
        .name = std::to_string(runs) + " runs a side, power",
        .scope = Scope::kSetups,
        .make = [&](const Folder& folder,
                    std::uint64_t sample) { return trainings(folder, 5000 + sample, what); },
        .options = outcome()};
    const double planned = report::repeats_power(deviation, runs, 0.002, 0.02);
    CHECK(certified(scenario) == near(planned));
  }
  const Scenario curve{.name = "one pair of 400 steps, power",
                       .scope = Scope::kModels,
                       .make =
                           [&](const Folder& folder, std::uint64_t sample) {
                             return trajectory(folder, 5000 + sample, 400, 0.5, 0.004, 0);
                           },
                       .options = one_trajectory("loss=0.003")};
  // The last tenth has 40 points; a coefficient of 0.5 is an autocorrelation time of 3.
  CHECK(certified(curve) == near(report::series_power(0.004, 3, 40, 0.003)));
  const std::vector<std::size_t> sizes = {200, 150, 250};
  const Scenario macro{.name = "macro average, power",
                       .scope = Scope::kModels,
                       .make =
                           [&](const Folder& folder, std::uint64_t sample) {
                             return evaluations(folder, 5000 + sample, sizes, 0.01, 0);
                           },
                       .options = outcome("macro=1.5")};
  const std::vector<double> shares(3, 0.01);
  const std::vector<std::int64_t> counts(sizes.begin(), sizes.end());
  const auto limits = report::macro_limits(shares, counts);
  const double planned =
      static_cast<double>(std::lower_bound(limits.begin(), limits.end(), 0.015) - limits.begin()) /
      static_cast<double>(limits.size());
  CHECK(certified(macro) == near(planned));
}

TEST_CASE("the program says what the library says, whatever the databases are called",
          "[cli][simulation]") {
  for (std::uint64_t sample = 0; sample < 3; ++sample) {
    const Folder folder;
    const Sides sides = trainings(folder, sample, {.runs = 4});
    const ParityReport report = report::compare(sides.a, sides.b, outcome());
    const auto renamed = folder.path("another name");
    fs::copy_file(folder.path("b"), renamed);
    const auto run = sides.b.substr(sides.b.rfind(':'));
    for (const auto& [a, b] :
         {std::pair{sides.a, sides.b}, {sides.b, sides.a}, {sides.a, renamed.string() + run}}) {
      const auto ended =
          harness(folder / "log", {"report", "parity", a, b, "--kind", "outcome", "--json"});
      INFO(ended.err);
      CHECK(nlohmann::json::parse(ended.out)["verdict"] == to_string(report.verdict));
    }
  }
}

TEST_CASE("tokens that one log alone tells are not mixed with steps", "[cli][simulation]") {
  const Folder folder;
  SimulatedRun a{.losses = falling(1, 60, 0.05)}, b = a;
  b.tokens_known = false;
  for (const auto& [name, run] : {std::pair{"a", &a}, {"b", &b}}) {
    auto records = folder.database(name);
    write_run(records, *run);
  }
  const auto in_a = folder.path("a").string(), in_b = folder.path("b").string();
  const auto report = report::compare(in_a, in_b, one_trajectory(""));
  CHECK(report.verdict == Verdict::kInvalidData);
  CHECK(report::compare(in_b, in_a, one_trajectory("")).verdict == report.verdict);
}

}  // namespace olmo::test
