#include "report/training/assignment.h"

#include <cmath>

#include "core/text/text.h"
#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

store::RecordedRun run_at(const std::string& environment, std::vector<std::string> tags = {}) {
  store::RecordedRun run = run_of_losses({9, 8});
  run.tags = std::move(tags);
  run.attempts.resize(1);
  run.attempts[0].environment = environment;
  return run;
}

store::RecordedRun on(const std::string& host, std::vector<std::string> tags = {}) {
  return run_at(R"({"host":")" + host + R"("})", std::move(tags));
}

/// Of a run that both databases hold.
std::optional<char> side(const store::RecordedRun& run, const store::RecordedRun& a,
                         const store::RecordedRun& b) {
  const Assigned found = side_of({run, true, true}, a, b);
  CHECK_FALSE(found.reason.empty());
  return found.side;
}

}  // namespace

TEST_CASE("a run belongs to the side whose host, cluster or hardware it states", "[report]") {
  CHECK(side(on("m7"), on("m7"), on("x1")) == 'A');
  CHECK(side(on("x1"), on("m7"), on("x1")) == 'B');
  CHECK(side(on("nid0777"), on("nid0012"), on("jwb0400")) == 'A');  // another node
  CHECK_FALSE(side(on("laptop"), on("m7"), on("x1")));
  const auto slurm = [](const std::string& name) {
    return run_at(R"({"host":"n1","variables":{"SLURM_CLUSTER_NAME":")" + name + R"("}})");
  };
  CHECK(side(slurm("mosaic"), slurm("lumi"), slurm("mosaic")) == 'B');
  const auto with = [](const std::string& gpu) { return run_at(R"({"gpu":")" + gpu + R"("})"); };
  CHECK(side(with("MI250X"), with("A100"), with("MI250X")) == 'B');
}

TEST_CASE("the tag of a side wins over the place of the run", "[report]") {
  CHECK(side(on("m7", {"side:b"}), on("m7"), on("x1", {"side:b"})) == 'B');
  CHECK(side(on("laptop", {"side:m7"}), on("m7"), on("x1")) == 'A');
  CHECK_FALSE(side(on("m7", {"side:c"}), on("m7", {"side:a"}), on("x1", {"side:b"})));
  CHECK_FALSE(side(on("m7", {"side:a"}), on("m7", {"side:a"}), on("m7", {"side:a"})));
}

TEST_CASE("the database tells where the records do not, if it is one of two", "[report]") {
  const auto nowhere = run_at("{}");
  CHECK(side_of({nowhere, true, false}, nowhere, nowhere).side == 'A');
  CHECK(side_of({nowhere, false, true}, nowhere, nowhere).side == 'B');
  CHECK(side_of({nowhere, false, true}, nowhere, nowhere).by_database);
  CHECK_FALSE(side_of({nowhere, true, true}, nowhere, nowhere).side);
  CHECK_FALSE(side_of({on("laptop"), true, false}, on("m7"), on("x1")).side);
  CHECK(side_of({on("m7"), false, true}, on("m7"), on("x1")).side == 'A');
}

TEST_CASE("a seed is known from a record, and from a log whose config tells it", "[report]") {
  store::RecordedRun run = run_at("{}");
  run.config = "{}";
  CHECK(seed_of(run) == 0);
  run.imported = true;
  CHECK_FALSE(seed_of(run));
  run.config = R"({"seed":0})";
  CHECK(seed_of(run) == 0);
}

TEST_CASE("runs are the same run by their chain, or by their losses", "[report]") {
  store::RecordedRun a = run_at("{}"), b = run_at("{}");
  CHECK(is_same_run(a, b));
  b.steps.loss[1] = 8.5;
  CHECK_FALSE(is_same_run(a, b));
  a.last_chain = b.last_chain = "01";
  CHECK(is_same_run(a, b));
}

TEST_CASE("copies that are cut at other ends, or count from another step, are the same run",
          "[report]") {
  std::vector<double> losses;
  for (int i = 0; i < 40; ++i) losses.push_back(11.123456789 / (1 + i) + std::sin(i * i));
  const store::RecordedRun whole = run_of_losses(losses);
  store::RecordedRun without_first = run_of_losses({losses.begin() + 1, losses.end()});
  for (auto& step : without_first.steps.step) ++step;
  const store::RecordedRun without_last = run_of_losses({losses.begin(), losses.end() - 1});
  CHECK(is_same_run(without_first, without_last));
  store::RecordedRun from_0 = whole;
  for (auto& step : from_0.steps.step) --step;
  CHECK(is_same_run(whole, from_0));
  from_0.steps.loss[7] += 1e-9;
  CHECK_FALSE(is_same_run(whole, from_0));
  // Few common steps tell nothing, whatever they hold.
  const store::RecordedRun first = run_of_losses({losses.begin(), losses.begin() + 6});
  store::RecordedRun later = run_of_losses({losses.begin() + 3, losses.begin() + 12});
  for (auto& step : later.steps.step) step += 3;
  CHECK_FALSE(is_same_run(first, later));
}

TEST_CASE("a copy in fewer digits or in fp32 is the same run", "[report]") {
  std::vector<double> losses;
  for (int i = 0; i < 40; ++i) losses.push_back(11.123456789 / (1 + i) + 0.1);
  const store::RecordedRun whole = run_of_losses(losses);
  store::RecordedRun copy = whole;
  copy.imported = true;
  for (double& loss : copy.steps.loss) loss = static_cast<double>(static_cast<float>(loss));
  CHECK(is_same_run(whole, copy));
  for (double& loss : copy.steps.loss) loss = std::stod(formatted("%.3g", loss));
  CHECK(is_same_run(whole, copy));
  copy.steps.loss[30] += 0.002;
  CHECK_FALSE(is_same_run(whole, copy));
}

TEST_CASE("a copy that is cut short, thinned out or rounded is still the same run", "[report]") {
  const std::vector<double> losses = {9.12345678, 8.2345678, 7.345678, 6.45678, 5.5678, 4.678};
  store::RecordedRun whole = run_of_losses(losses), copy = whole;
  copy.imported = true;
  for (auto* column : {&copy.steps.step, &copy.steps.tokens}) column->pop_back();
  for (auto* column : {&copy.steps.loss, &copy.steps.grad_norm}) column->pop_back();
  CHECK(is_same_run(whole, copy));
  for (double& loss : copy.steps.loss) loss = std::round(loss * 100) / 100;
  CHECK(is_same_run(whole, copy));
  copy.steps.loss[2] += 0.01;
  CHECK_FALSE(is_same_run(whole, copy));
  CHECK_FALSE(is_same_run(run_of_losses({9}), run_of_losses({9, 8})));  // one step tells nothing
}
