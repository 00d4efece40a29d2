// Training on a GPU of which only the driver and the compiler are replaced (tests/ops/gpu/fake).
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "core/json.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

TEST_CASE("a run on an emulated GPU has the CPU's chain and state", "[cli][gpu]") {
  const Scene scene;
  const Words five = {"max_duration=5", "scheduler.t_warmup=2", "hash_interval=5"};
  REQUIRE(scene.train("cpu", five).code == 0);
  const auto expected = scene.record("cpu");
  for (const auto& [device, folder] :
       {std::pair("cuda", OLMO_FAKE_CUDA), {"rocm", OLMO_FAKE_ROCM}}) {
    ::setenv("OLMO_GPU_LIBRARIES", folder, 1);
    Words words = five;
    words.push_back(std::string("device=") + device);
    const auto ended = scene.train(device, words);
    ::unsetenv("OLMO_GPU_LIBRARIES");
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto found = scene.record(device);
    CHECK(found.proof() == expected.proof());
    CHECK(found.steps() == "1..5");
    const Json policy = Json::parse(found.value("SELECT policy FROM attempts"));
    CHECK(policy.at("device") == device);
    CHECK(policy.at("device_name") == "Emulated GPU");
    CHECK(found.value("SELECT experiment_digest FROM runs") ==
          expected.value("SELECT experiment_digest FROM runs"));
  }
}

TEST_CASE("training on a device that is not there ends with exit code 2 and one sentence",
          "[cli][gpu]") {
  const Scene scene;
  ::setenv("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA, 1);
  ::setenv("FAKE_GPUS", "0", 1);
  const auto ended = scene.train("none", {"device=cuda"});
  ::unsetenv("FAKE_GPUS");
  ::unsetenv("OLMO_GPU_LIBRARIES");
  CHECK(ended.code == 2);
  CHECK(ended.says("shows this process no GPU"));
}

}  // namespace
}  // namespace olmo::test
