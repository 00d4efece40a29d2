// Runs on a GPU of which the driver, the compiler and LibTorch's half are replaced
// (tests/ops/gpu/fake), in every order in which such a device may work.
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/words.h"
#include "core/files/json.h"
#include "support/catch.h"
#include "support/environment.h"

namespace olmo::test {
namespace {

/// Where the libraries of CUDA's emulated device are, and how it works.
struct Cuda {
  Environment libraries{"OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA};
  Environment mode{"FAKE_GPU_MODE", "delayed"};
};

const Words kHashed = {"hash_interval=10", "save_interval=10"};

/// The tiny run of twenty steps, computed by the CPU.
struct OnCpu : Scene {
  OnCpu() {
    REQUIRE(train("run", kHashed).code == 0);
    proof = record("run").proof();
  }
  Proof proof;
};

const OnCpu& the_run() {
  static const OnCpu kRun;
  return kRun;
}

TEST_CASE("twenty steps on an emulated GPU have the CPU's chain and state, whatever its order",
          "[cli][gpu]") {
  struct Way {
    std::string device, folder, mode;
    std::unique_ptr<Child> child = nullptr;
  };
  Way ways[] = {{"cuda", OLMO_FAKE_CUDA, "now"},
                {"cuda", OLMO_FAKE_CUDA, "reversed"},
                {"rocm", OLMO_FAKE_ROCM, "delayed"}};
  const Scene scene;
  for (auto& way : ways) {  // beside each other: one takes seconds
    const Environment libraries("OLMO_GPU_LIBRARIES", way.folder), mode("FAKE_GPU_MODE", way.mode);
    way.child =
        std::make_unique<Child>(scene.command(way.mode, with(kHashed, {"device=" + way.device})),
                                scene / (way.mode + "-log"));
  }
  for (const auto& way : ways) {
    const auto ended = way.child->wait();
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto found = scene.record(way.mode);
    CHECK(found.proof() == the_run().proof);
    CHECK(found.steps() == "1..20");
    const Json policy = Json::parse(found.value("SELECT policy FROM attempts"));
    CHECK(policy.at("device") == way.device);
    CHECK(policy.at("device_name") == "Emulated GPU");
    CHECK(found.value("SELECT experiment_digest FROM runs") ==
          the_run().record("run").value("SELECT experiment_digest FROM runs"));
  }
}

TEST_CASE("a training in amp_bf16 on an emulated GPU has the CPU's chain and state", "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  for (const std::string strategy : {"fsdp", "ddp"}) {
    const Words how = {"precision=amp_bf16", "distributed_strategy=" + strategy, "stop_at=2",
                       "hash_interval=2"};
    for (const std::string device : {"cpu", "cuda"}) {
      const auto ended = scene.train(strategy + device, with(how, {"device=" + device}));
      INFO(ended.err);
      REQUIRE(ended.code == 0);
    }
    INFO(strategy);
    CHECK(scene.record(strategy + "cuda").proof() == scene.record(strategy + "cpu").proof());
  }
}

TEST_CASE("a training that keeps to documents has the CPU's chain and state on an emulated GPU",
          "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  const auto ids = token_ids<std::uint16_t>();  // the first instance has the end of a document
  const Words how = {"data.shuffle=false", "model.eos_token_id=" + std::to_string(ids[5]),
                     "stop_at=1", "hash_interval=1"};
  const auto proof_of = [&](const std::string& name, const Words& more) {
    const auto ended = scene.train(name, with(how, more));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return scene.record(name).proof();
  };
  const auto on_cpu = proof_of("cpu", {"data.generate_doc_lengths=true"});
  CHECK(proof_of("cuda", {"data.generate_doc_lengths=true", "device=cuda"}) == on_cpu);
  CHECK(proof_of("whole", {}).state != on_cpu.state);
}

TEST_CASE("a training with the library's matrix products runs on a GPU, twice with the same bits",
          "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  for (const std::string precision : {"fp32", "amp_bf16"}) {
    INFO(precision);
    Words chains;
    for (const char* name : {"first", "second"}) {
      const std::string run = name + precision;
      const auto ended =
          scene.train(run, {"device=cuda", "numerics=fast", "precision=" + precision, "stop_at=2"});
      INFO(ended.err);
      REQUIRE(ended.code == 0);
      chains.push_back(scene.record(run).proof().chain);
    }
    CHECK(chains[0] == chains[1]);
  }
}

TEST_CASE("a run goes from the CPU to a GPU and back with the same chain and state", "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  const auto go = [&](const Words& more) { return scene.train("run", with(kHashed, more)); };
  REQUIRE(go({"stop_after=4"}).code == 75);
  const auto there = go({"stop_after=9", "device=cuda", "--resume", "latest"});
  INFO(there.err);
  REQUIRE(there.code == 75);
  REQUIRE(go({"--resume", "latest"}).code == 0);
  CHECK(scene.record("run").proof() == the_run().proof);
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("a run in amp_bf16 goes from the CPU to a GPU and back with the same chain and state",
          "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  for (const std::string strategy : {"fsdp", "ddp"}) {
    INFO(strategy);
    const auto go = [&](const std::string& run, const Words& more) {
      const auto ended = scene.train(strategy + run,
                                     with({"precision=amp_bf16", "distributed_strategy=" + strategy,
                                           "stop_at=3", "hash_interval=3"},
                                          more));
      INFO(ended.err);
      return ended.code;
    };
    REQUIRE(go("whole", {}) == 0);
    REQUIRE(go("parts", {"stop_after=1"}) == 75);
    REQUIRE(go("parts", {"stop_after=1", "device=cuda", "--resume", "latest"}) == 75);
    REQUIRE(go("parts", {"--resume", "latest"}) == 0);
    CHECK(scene.record(strategy + "parts").proof() == scene.record(strategy + "whole").proof());
    CHECK(scene.record(strategy + "parts").steps() == "1..3");
  }
}

TEST_CASE("tasks and texts evaluated on a GPU have the CPU's numbers", "[cli][gpu]") {
  const TemporaryDirectory folder;
  const auto instances = [&](const std::string& name, const Words& more) {
    const auto ended = harness(
        folder / name,
        with({"eval", kGolden / "model", "--tokenizer", kGolden / "tokenizer.json", "--data",
              kGolden / "data", "--db", folder / (name + ".db"), "--json", "--tasks", "arc_easy",
              "--perplexity", "made=" + (kGolden / "perplexity/documents.jsonl").string(),
              "--instances", folder / (name + ".jsonl")},
             more));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return read_file(folder / (name + ".jsonl")) + Json::parse(ended.out).at("perplexity").dump();
  };
  const Cuda cuda;
  for (const std::string precision : {"fp32", "amp_bf16"}) {
    INFO(precision);
    const Words how = {"--precision", precision};
    const auto expected = instances("cpu-" + precision, how);
    CHECK(instances("cuda-" + precision, with(how, {"--device", "cuda"})) == expected);
  }
}

TEST_CASE("a run is audited on another device than it was computed on", "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  REQUIRE(
      scene.train("gpu", with(kHashed, {"device=cuda", "trace_interval=2", "stop_at=4"})).code ==
      0);
  const auto audit = [&](const fs::path& run, const Words& more) {
    const auto ended = harness(scene / "audit",
                               with({"audit", run, "--checkpoints", run, "--steps", "1..3"}, more));
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.find("AUDIT PASSED: every bit agrees") != std::string::npos);
  };
  audit(scene / "gpu", {});
  audit(the_run() / "run", {"--device", "cuda"});
}

TEST_CASE("a run in amp_bf16 is audited on another device than it was computed on", "[cli][gpu]") {
  const Scene scene;
  const Cuda cuda;
  for (const std::string strategy : {"fsdp", "ddp"}) {
    for (const std::string device : {"cuda", "cpu"}) {
      const std::string run = strategy + device, other = device == "cpu" ? "cuda" : "cpu";
      INFO(run);
      REQUIRE(scene
                  .train(run, {"precision=amp_bf16", "distributed_strategy=" + strategy,
                               "device=" + device, "trace_interval=2", "stop_at=2"})
                  .code == 0);
      const auto ended = harness(scene / (run + "-audit"), {"audit", scene / run, "--checkpoints",
                                                            scene / run, "--device", other});
      INFO(ended.out << ended.err);
      CHECK(ended.code == 0);
      CHECK(ended.out.find("AUDIT PASSED: every bit agrees") != std::string::npos);
    }
  }
}

TEST_CASE(
    "a kernel that fails ends the training with one sentence that names it, and the last "
    "checkpoint is whole",
    "[cli][gpu]") {
  const Scene scene;
  const Words often = {"hash_interval=10", "save_interval=2"};  // it fails in the fourth step
  for (const char* mode : {"now", "delayed"}) {
    const std::string name = std::string("run-") + mode;
    {
      const Environment libraries("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA), how("FAKE_GPU_MODE", mode),
          fail("FAKE_GPU_FAIL", "olmo_swiglu_backward:14");
      check_refused(scene.train(name, with(often, {"device=cuda"})), 1,
                    {"device Emulated GPU", "unspecified launch failure", "launched last: olmo_"});
    }
    CHECK(fs::exists(scene / name / "step2" / "manifest.json"));
    REQUIRE(scene.train(name, with(often, {"--resume", "latest"})).code == 0);
    CHECK(scene.record(name).proof() == the_run().proof);
  }
}

TEST_CASE("a model that a device's memory cannot hold ends with one sentence", "[cli][gpu]") {
  const Scene scene;
  const Environment libraries("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA),
      memory("FAKE_GPU_MEMORY", "700000");
  check_refused(
      scene.train("run", {"device=cuda"}), 1,
      {"on cuda:0: there is no memory for it", "Process 7 has 1 GiB memory in use; less"});
}

TEST_CASE("an evaluation that a device's memory cannot hold says what needs less", "[cli][gpu]") {
  const Scene scene;
  const Environment libraries("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA),
      memory("FAKE_GPU_MEMORY", "20000");
  const Words words = {"eval",           kGolden / "model",
                       "--tokenizer",    kGolden / "tokenizer.json",
                       "--data",         kGolden / "data",
                       "--db",           scene / "e.db",
                       "--tasks",        "arc_easy",
                       "--device",       "cuda",
                       "--batch-tokens", "300"};
  const std::string less = "; less is needed with a smaller --batch-tokens (it is 300)";
  check_refused(harness(scene / "fp32", words), 1,
                {"on cuda:0: there is no memory for it", less + ", or with --precision amp_bf16"});
  check_refused(harness(scene / "bf16", with(words, {"--precision", "amp_bf16"})), 1,
                {less + "\n"});
}

TEST_CASE("training on a device that is not there ends with exit code 2 and one sentence",
          "[cli][gpu]") {
  const Scene scene;
  const Environment libraries("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA), gpus("FAKE_GPUS", "0");
  check_refused(scene.train("none", {"device=cuda"}), 2, {"shows this process no GPU"});
}

TEST_CASE("a GPU's libraries that are missing are named, all of them, by a training and by doctor",
          "[cli][gpu]") {
  const Scene scene;
  const fs::path folder = scene / "libraries";
  fs::create_directory(folder);
  for (const char* name : {"libcuda.so.1", "libnvrtc.so"})
    fs::create_symlink(fs::path(OLMO_FAKE_CUDA) / name, folder / name);
  for (const char* name : {"libtorch_cuda.so", "libolmo_beside.so"})
    fs::create_symlink(fs::path(OLMO_FAKE_INCOMPLETE) / name, folder / name);
  const Environment place("OLMO_GPU_LIBRARIES", folder.string());
  const std::string missing = "libolmo_absent_a.so, libolmo_absent_b.so";
  check_refused(scene.train("none", {"device=cuda"}), 2,
                {"libtorch_cuda.so lacks libraries that it needs: " + missing, "--libtorch"});
  const auto ended = harness(scene / "doctor", {"doctor", "--json"});
  const auto libraries = Json::parse(ended.out).at("gpus").at("libraries");
  CHECK(libraries.at(0).at("found") == true);
  CHECK(libraries.at(1).at("found") == true);
  CHECK(libraries.at(2).at("name") == "libtorch_cuda.so");
  CHECK(libraries.at(2).at("problem") == "lacks libraries that it needs: " + missing);
  CHECK(libraries.at(2).at("command").get<std::string>().find("--libtorch") != std::string::npos);
}

TEST_CASE("doctor says that the compiler is newer than the driver", "[cli][gpu]") {
  const TemporaryDirectory folder;
  const Environment libraries("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA),
      version("FAKE_DRIVER_VERSION", "12020");
  const auto ended = harness(folder / "doctor", {"doctor"});
  INFO(ended.out);
  CHECK(ended.out.find("libnvrtc.so is here: NVIDIA's run-time compiler; NVRTC 12.4 is newer than "
                       "the driver, which is for CUDA 12.2: it loads the compiled kernels") !=
        std::string::npos);
}

}  // namespace
}  // namespace olmo::test
