#include "report/record/measures.h"

#include <limits>

#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

store::RecordedRun measured() {
  store::RecordedRun run;
  run.energy = {{.source = "rapl", .device = "package-0", .covers = "package"}};
  run.energy[0].joules = 12;
  run.energy[0].seconds = 3;
  run.energy[0].attempt = 1;
  run.energy.push_back({.source = "nvml", .device = "gpu0", .covers = "device"});  // not measured
  run.ranks = {{.rank = 0, .steps = 5, .data_seconds = -1e-9, .slowest_steps = 5, .attempt = 1}};
  run.phases = {{.first_step = 1, .last_step = 5, .phase = "compute"}};
  run.phases[0].mean = run.phases[0].least = run.phases[0].most = 0.1;
  run.audits.resize(2);
  for (store::AuditRecord& audit : run.audits) {
    audit.audit = &audit - run.audits.data() + 1;
    audit.first_step = audit.last_step = 3;
    audit.verdict = "identical";
  }
  run.audits[1].verdict = "different";
  run.audits[1].difference_step = 3;
  return run;
}

/// The one sentence about a record of which something was edited.
template <class Edit>
std::string sentence(const Edit& edit) {
  store::RecordedRun run = measured();
  edit(run);
  const auto found = impossible_measures(run);
  REQUIRE(found.size() == 1);
  return found[0];
}

}  // namespace

TEST_CASE("what was measured, and what was not, is possible", "[report]") {
  CHECK(impossible_measures(measured()).empty());
}

TEST_CASE("negative and infinite joules and seconds are told by their sensor", "[report]") {
  CHECK(sentence([](auto& run) { run.energy[0].joules = -1; }) ==
        "energy of rapl package-0 in attempt 1: joules is -1, which no machine measures: it was "
        "altered");
  CHECK(sentence([](auto& run) { run.energy[0].joules = kInfinite; }).find("joules is inf") !=
        std::string::npos);
  CHECK(sentence([](auto& run) { run.energy[0].seconds = -3; }).find("seconds is -3") !=
        std::string::npos);
}

TEST_CASE("times, bytes and steps of a rank that cannot be are told by the rank", "[report]") {
  CHECK(sentence([](auto& run) {
          run.ranks[0].compute_seconds = -5;
        }).find("rank 0 of attempt 1: compute_seconds is -5, which") == 0);
  CHECK(sentence([](auto& run) { run.ranks[0].exchanged_bytes = -5; }).find("exchanged_bytes") !=
        std::string::npos);
  CHECK(sentence([](auto& run) { run.ranks[0].slowest_steps = 6; }) ==
        "rank 0 of attempt 1: it was the slowest in 6 of 5 steps: one of them was altered");
}

TEST_CASE("a mean that its extremes do not hold is told by the phase", "[report]") {
  CHECK(sentence([](auto& run) { run.phases[0].mean = 0.2; }) ==
        "phase compute of steps 1 to 5: its mean of 0.2 s is not within 0.1 and 0.1: one of them "
        "was altered");
  CHECK(sentence([](auto& run) {
          run.phases[0].mean = run.phases[0].least = run.phases[0].most = -1;
        }).find("mean is -1") != std::string::npos);
  CHECK(sentence([](auto& run) {
          run.phases[0].first_step = 6;
        }).find("phase compute of steps 6 to 5: these are no steps") == 0);
}

TEST_CASE("results of audits that contradict themselves are told by the audit", "[report]") {
  CHECK(sentence([](auto& run) { run.audits[1].verdict = "identical"; }) ==
        "audit 2: its verdict is identical, and a step that differs is recorded: one of them was "
        "altered");
  CHECK(sentence([](auto& run) {
          run.audits[0].verdict = "different";
        }).find("audit 1: its verdict is different, and no step") == 0);
  CHECK(sentence([](auto& run) { run.audits[0].first_step = -5; }).find("its steps are -5 to 3") !=
        std::string::npos);
  CHECK(sentence([](auto& run) {
          run.audits[0].ce_loss_distance = -1;
        }).find("ce_loss_distance is -1, and no distance is negative") != std::string::npos);
}
