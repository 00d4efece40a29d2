#include "report/cost/efficiency.h"

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "core/error.h"
#include "core/files/json.h"
#include "model/model_config.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using Catch::Matchers::Contains;

Cluster cluster_named(const std::string& name) {
  return read_cluster(OLMO_SOURCE_DIR "/configs/clusters/" + name + ".json");
}

store::EnergyRecord measured(std::int64_t attempt, const std::string& source,
                             const std::string& device, const std::string& covers,
                             std::optional<double> joules, std::optional<double> seconds = 100) {
  store::EnergyRecord row;
  row.attempt = attempt;
  row.source = source;
  row.device = device;
  row.covers = covers;
  row.joules = joules;
  row.seconds = joules ? seconds : std::nullopt;
  row.note = joules ? "counted" : "not there";
  return row;
}

/// Four steps of 1000 tokens and a second each; one attempt of 200 seconds.
store::RecordedRun recorded_run() {
  store::RecordedRun run;
  run.config =
      R"({"model": {"d_model": 64, "n_layers": 2, "max_sequence_length": 32, "vocab_size": 500,
                    "embedding_size": 512, "weight_tying": false}})";
  run.n_parameters = 200'000;
  run.steps.step = {1, 2, 3, 4};
  run.steps.tokens = {1000, 2000, 3000, 4000};
  run.steps.seconds = {1, 1, 1, 1};
  run.steps.tokens_per_second = {500, 1000, 1100, 1200};
  store::AttemptRecord attempt;
  attempt.attempt = 1;
  attempt.started_utc = "2026-01-31T23:59:00.000Z";
  attempt.ended_utc = "2026-02-01T00:02:20.000Z";
  attempt.environment =
      R"({"cpu": "a processor", "devices": [{"kind": "cpu"}], "peak_flops": 2e11})";
  run.attempts = {attempt};
  return run;
}

}  // namespace

TEST_CASE("a step that took no time, or less, leaves the time of all unknown", "[report]") {
  store::RecordedRun run = recorded_run();
  CHECK(efficiency_of(run, {}).train_seconds == 4);
  for (const double seconds : {-1.0, 0.0}) {
    run.steps.seconds[1] = seconds;
    CHECK_FALSE(efficiency_of(run, {}).train_seconds);
  }
  CHECK(efficiency_of(run, {}).tokens_per_second);
  run.steps.tokens_per_second[2] = -5;
  CHECK_FALSE(efficiency_of(run, {}).tokens_per_second);
}

TEST_CASE("the cluster files give the carbon of OLMo's paper", "[report]") {
  store::RecordedRun run;
  run.energy = {measured(1, "pm_counters", "node", "node", 104 * 3.6e9)};
  const auto a100 = efficiency_of(run, cluster_named("mosaicml-a100"));
  CHECK(a100.kwh.value() == Approx(104e3));
  CHECK(a100.facility_kwh.value() == Approx(114.4e3));
  CHECK(a100.carbon_kg.value() == Approx(69'784));
  CHECK_FALSE(a100.carbon_kg_market);
  run.energy = {measured(1, "pm_counters", "node", "node", 135 * 3.6e9)};
  const auto lumi = efficiency_of(run, cluster_named("lumi-mi250x"));
  CHECK(lumi.carbon_kg.value() == Approx(3564));
  CHECK(lumi.carbon_kg_market.value() == 0);
}

TEST_CASE("work per token is what the trainer's MFU takes", "[report]") {
  for (const char* name : {"olmo-1b", "olmo-7b", "olmo-150m", "tiny"}) {
    for (const char* change :
         {"model.weight_tying=true", "model.weight_tying=false", "model.sliding_window=19"}) {
      const auto loaded = config::load_config(
          OLMO_SOURCE_DIR "/configs/train/" + std::string(name) + ".json", {change});
      const auto& model = loaded.config.model;
      store::RecordedRun run;
      run.config = config::to_json(loaded.config).dump();
      run.n_parameters = model::count_parameters(model).total;
      const auto flops = model::flops_per_token(model, model.max_sequence_length);
      INFO(name << " " << change);
      CHECK(efficiency_of(run, {}).flops_per_token.value() ==
            static_cast<double>(flops.model_forward + flops.model_backward));
    }
  }
}

TEST_CASE("the peak names its source, and a share above 100 % is noted", "[report]") {
  auto run = recorded_run();
  const auto with_peak = [&run](const std::string& facts) {
    run.attempts.back().environment = "{" + facts + "}";
    return efficiency_of(run, {});
  };
  const std::string devices = R"("devices": [{"kind": "cpu"}])";
  const auto old = with_peak(devices + R"(, "peak_flops": 2e11)");
  CHECK(old.peak_source == "measured: matrix products, briefly before training");
  CHECK(old.mfu_note.empty());
  const auto low = with_peak(devices + R"(, "peak_flops": 1e6, "peak_source": "measured: so")");
  CHECK(low.peak_source == "measured: so");
  CHECK(low.mfu.value() > 1);
  CHECK(low.mfu_note.find("above 100 %") == 0);
  const auto unknown =
      with_peak(devices + R"(, "peak_flops": null, "peak_source": "unknown: GPU")");
  CHECK_FALSE(unknown.mfu);
  CHECK(unknown.peak_source == "unknown: GPU");
}

TEST_CASE("rates, utilisation and hours of a recorded run", "[report]") {
  const auto result = efficiency_of(recorded_run(), {});
  CHECK(result.tokens.value() == 4000);
  CHECK(result.train_seconds.value() == 4);
  CHECK(result.attempt_seconds.value() == Approx(200));
  CHECK(result.redone_seconds.value() == 0);
  CHECK(result.tokens_per_second.value() == 1050);
  CHECK(result.tokens_per_second_per_device.value() == 1050);
  const double flops = 6.0 * (200'000 - 512 * 64 + 2 * 64 * 32);
  CHECK(result.flops_per_token.value() == flops);
  CHECK(result.mfu.value() == Approx(1050 * flops / 2e11));
  CHECK(result.device_hours.value() == Approx(200.0 / 3600));
  CHECK(result.device == "a processor");
  const auto h100 = efficiency_of(recorded_run(), cluster_named("h100-sxm"));
  CHECK(h100.mfu.value() == Approx(1050 * flops / 989e12));
  auto resumed = recorded_run();  // goes on from another run's state
  resumed.steps.step = {11, 12, 13, 14};
  resumed.steps.tokens = {11'000, 12'000, 13'000, 14'000};
  CHECK(efficiency_of(resumed, {}).tokens.value() == 4000);
}

TEST_CASE("what a run does not record stays absent", "[report]") {
  store::RecordedRun run;
  run.config = R"({"model": {"d_model": "wide", "n_layers": -2}})";
  const auto empty = efficiency_of(run, {});
  for (const auto& quantity :
       {empty.devices, empty.tokens, empty.train_seconds, empty.attempt_seconds,
        empty.redone_seconds, empty.tokens_per_second, empty.flops_per_token, empty.peak_flops,
        empty.mfu, empty.device_hours, empty.joules, empty.energy_coverage, empty.carbon_kg,
        empty.carbon_kg_market, empty.tokens_per_joule, empty.cost})
    CHECK_FALSE(quantity);
  CHECK_THAT(empty.energy_method, Contains("no record of energy"));
  CHECK_FALSE(empty.world.bytes_of_step);

  auto imported = recorded_run();
  CHECK(efficiency_of(imported, {}).redone_seconds == 0);
  imported.imported = true;  // what its log had twice is gone
  CHECK_FALSE(efficiency_of(imported, {}).redone_seconds);

  auto unmeasured = recorded_run();
  unmeasured.energy = {measured(1, "rapl", "package-0", "package", std::nullopt)};
  const auto result = efficiency_of(unmeasured, cluster_named("lumi-mi250x"));
  CHECK_FALSE(result.joules);
  CHECK_FALSE(result.carbon_kg_market);
  CHECK(result.energy_method == "not measured: rapl: not there");
  for (const char* text : {"{", "[]", "3", R"({"devices": 2, "peak_flops": "much"})"}) {
    auto broken = recorded_run();
    broken.attempts[0].environment = text;
    broken.attempts[0].ended_utc = "2026-02-31T00:00:00Z";
    CHECK_FALSE(efficiency_of(broken, {}).mfu);
    CHECK_FALSE(efficiency_of(broken, {}).attempt_seconds);
  }
}

TEST_CASE("a die whose energy its neighbour counts adds nothing", "[report]") {
  auto run = recorded_run();
  run.energy = {measured(1, "rocm_smi", "gpu0", "package", 50'000.0, 200),
                measured(1, "rocm_smi", "gpu1", "package", 0.0, 200)};
  const auto result = efficiency_of(run, {});
  CHECK(result.joules.value() == 50'000);
  CHECK(result.energy_coverage.value() == Approx(1));
  CHECK(result.energy_method == "rocm_smi gpu0 (package)");
  CHECK(result.tokens_per_joule.value() == Approx(0.08));
}

TEST_CASE("energy is that of the widest coverage, and of it alone", "[report]") {
  auto run = recorded_run();
  run.energy = {measured(1, "rapl", "package-0", "package", 1000),
                measured(1, "nvml", "gpu0", "device", 4000)};
  CHECK(efficiency_of(run, {}).joules.value() == 5000);
  CHECK(efficiency_of(run, {}).energy_coverage.value() == Approx(0.5));
  run.energy.push_back(measured(1, "slurm", "job-7", "job", 7000, std::nullopt));
  CHECK(efficiency_of(run, {}).joules.value() == 7000);
  CHECK_FALSE(efficiency_of(run, {}).energy_coverage);
  run.energy.push_back(measured(1, "pm_counters", "node", "node", 6500, 200));
  CHECK(efficiency_of(run, {}).joules.value() == 6500);
  CHECK(efficiency_of(run, {}).energy_coverage.value() == Approx(1));
  CHECK(efficiency_of(run, {}).sources.size() == 4);
}

TEST_CASE("the energy of hosts is added, of each by its widest sensor", "[report]") {
  auto run = recorded_run();
  const auto of_host = [](const std::string& host, store::EnergyRecord row) {
    row.host = host;
    return row;
  };
  run.energy = {of_host("a", measured(1, "pm_counters", "node", "node", 1000)),
                of_host("a", measured(1, "rapl", "package-0", "package", 300)),
                of_host("b", measured(1, "pm_counters", "node", "node", 1500))};
  CHECK(efficiency_of(run, {}).joules == 2500);
  CHECK_THAT(efficiency_of(run, {}).energy_method, Contains("b: pm_counters node (node)"));
  // Without a counter of the node: the packages of that host.
  run.energy.back() = of_host("b", measured(1, "rapl", "package-0", "package", 400));
  CHECK(efficiency_of(run, {}).joules == 1400);
  // Slurm's figure holds all hosts, where not every one of them has a counter of its own.
  run.energy.push_back(of_host("a", measured(1, "slurm", "job-7", "job", 2600)));
  CHECK(efficiency_of(run, {}).joules == 2600);
}

TEST_CASE("ranks of a processor are one device a host, ranks of GPUs one each", "[report]") {
  auto run = recorded_run();
  for (const std::int64_t rank : {0, 1, 2}) {
    store::RankRecord row{.rank = rank, .host = rank < 2 ? "a" : "b"};
    row.attempt = 1;
    row.device = "cpu";
    run.ranks.push_back(row);
  }
  CHECK(efficiency_of(run, {}).devices == 2);
  for (auto& rank : run.ranks) rank.device = "rocm";
  CHECK(efficiency_of(run, {}).devices == 3);
}

TEST_CASE("energy is summed over attempts, a job's is counted once", "[report]") {
  auto run = recorded_run();
  run.attempts.push_back(run.attempts[0]);
  run.attempts[1].attempt = 2;
  run.attempts[1].ended_utc.clear();  // killed: it lasted at least as long as it was measured
  run.energy = {measured(1, "nvml", "gpu0", "device", 1000, 200),
                measured(2, "nvml", "gpu0", "device", 500, 80)};
  const auto result = efficiency_of(run, {});
  CHECK(result.joules.value() == 1500);
  CHECK(result.attempt_seconds.value() == Approx(280));
  CHECK(result.energy_coverage.value() == Approx(1));
  CHECK_FALSE(result.redone_seconds);
  run.energy = {measured(1, "slurm", "job-7", "job", 1000),
                measured(2, "slurm", "job-7", "job", 1800),
                measured(2, "slurm", "job-8", "job", 100)};
  CHECK(efficiency_of(run, {}).joules.value() == 1900);
}

TEST_CASE("a killed attempt counts until its last row, and the hours are at least that",
          "[report]") {
  auto run = recorded_run();
  CHECK(efficiency_of(run, {}).hours_note.empty());
  run.attempts.push_back(run.attempts[0]);
  run.attempts[0].ended_utc.clear();
  run.attempts[1].attempt = 2;
  run.attempts[1].environment =
      R"({"cpu": "a processor", "devices": [{}, {}], "peak_flops": 2e11})";
  const auto seconds = [&] { return efficiency_of(run, {}).attempt_seconds.value() - 200; };
  CHECK(seconds() == 0);
  store::EventRecord event;
  event.attempt = 1;
  event.utc = "2026-01-31T23:59:30.000Z";
  run.events = {event};
  CHECK(seconds() == 30);
  store::CheckpointRecord checkpoint;
  checkpoint.attempt = 1;
  checkpoint.created_utc = "2026-01-31T23:59:40.000Z";
  run.checkpoints[2] = checkpoint;
  CHECK(seconds() == 40);
  run.step_seconds = {{1, 90}, {2, 3}};
  CHECK(seconds() == 90);
  const Efficiency result = efficiency_of(run, {});
  CHECK(result.device_hours.value() == Approx((90.0 + 2 * 200.0) / 3600));
  CHECK(result.hours_note == "at least: when attempt 1 ended is not known");
  CHECK(result.redone_seconds.value() == 93 - 4);
}

TEST_CASE("an attempt whose clock was set back lasted as long as was measured in it", "[report]") {
  auto run = recorded_run();
  run.step_seconds = {{1, 300}};
  const Efficiency result = efficiency_of(run, {});
  CHECK(result.attempt_seconds == 300);
  CHECK_FALSE(result.hours_note.empty());
}

TEST_CASE("attempts on other machines have each its own devices, meters and hours", "[report]") {
  auto run = recorded_run();
  run.attempts.push_back(run.attempts[0]);
  run.attempts[1].attempt = 2;
  run.attempts[1].start_step = 2;
  run.attempts[1].environment =
      R"({"cpu": "a processor", "devices": [{}, {}, {}, {}], "peak_flops": 2e11})";
  const auto on_host = [](const std::string& host, store::EnergyRecord row) {
    row.host = host;
    return row;
  };
  run.energy = {on_host("a", measured(1, "pm_counters", "node", "node", 1000, 200)),
                on_host("b", measured(2, "pm_counters", "node", "node", 3000, 200))};
  const auto result = efficiency_of(run, {});
  CHECK(result.device_hours.value() == Approx((200.0 + 4 * 200.0) / 3600));
  CHECK(result.tokens_per_second.value() == 1150);  // of the steps on four devices
  CHECK(result.tokens_per_second_per_device.value() == 1150.0 / 4);
  CHECK(result.joules == 4000);
  CHECK(result.energy_coverage.value() == Approx(1));
  auto threads = run;
  threads.attempts[1].environment = threads.attempts[0].environment;
  CHECK(efficiency_of(threads, {}).tokens_per_second.value() == 1050);
  threads.attempts[1].policy = R"({"threads": 8})";
  CHECK(efficiency_of(threads, {}).tokens_per_second.value() == 1150);
  // Slurm knows the second attempt alone: what the first one's node counted is not forgotten.
  run.energy[1] = on_host("b", measured(2, "slurm", "job-8", "job", 2500, std::nullopt));
  CHECK(efficiency_of(run, {}).joules == 3500);
  // A host that measured nothing is no part of the coverage.
  run.energy[1] = on_host("b", measured(2, "pm_counters", "node", "node", std::nullopt));
  CHECK(efficiency_of(run, {}).joules == 1000);
  CHECK(efficiency_of(run, {}).energy_coverage.value() == Approx(0.5));
  CHECK_FALSE(efficiency_of(run, {}).tokens_per_joule);
  CHECK(result.tokens_per_joule.value() == 1);
}

TEST_CASE("throughput of all devices and of one follow from each other where their number is known",
          "[report]") {
  store::RecordedRun run = recorded_run();
  run.steps.tokens_per_second = {};
  run.steps.tokens_per_second_per_device = {10, 10, 10, 10};
  run.attempts[0].environment = R"({"gpu": "MI250X", "device_count": 8})";
  const Efficiency told = efficiency_of(run, {});
  CHECK(told.tokens_per_second == 80);
  CHECK(told.devices == 8);
  CHECK(told.device == "MI250X");
  run.attempts[0].environment = "{}";
  const Efficiency untold = efficiency_of(run, {});
  CHECK_FALSE(untold.tokens_per_second);
  CHECK(untold.tokens_per_second_per_device == 10);
  CHECK_FALSE(untold.devices);
}

TEST_CASE("the device is the GPU that the policy names", "[report]") {
  store::RecordedRun run = recorded_run();
  run.attempts[0].policy = R"({"device": "cuda", "device_name": "NVIDIA H100"})";
  CHECK(efficiency_of(run, {}).device == "NVIDIA H100");
}

TEST_CASE("a record with impossible counts of tokens has no tokens per joule, and no error",
          "[report]") {
  store::RecordedRun run;
  run.steps.step = {1, 2};
  run.steps.tokens = {-8, -16};
  CHECK_FALSE(efficiency_of(run, {}).tokens);
}

}  // namespace olmo::report
