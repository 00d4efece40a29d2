// One training on several processes, each with a GPU of its own: emulated ones, between which an
// emulated NCCL moves bytes (tests/ops/gpu/fake).
#include <memory>

#include "cli/words.h"
#include "core/process/process.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/happens.h"

namespace olmo::test {
namespace {

const Words kShort = {"stop_at=4", "hash_interval=4"};

/// The variables of emulated GPUs.
struct Gpus {
  explicit Gpus(int count, const std::string& way = "delayed",
                const std::string& folder = OLMO_FAKE_CUDA)
      : libraries("OLMO_GPU_LIBRARIES", folder),
        number("FAKE_GPUS", std::to_string(count)),
        mode("FAKE_GPU_MODE", way) {}
  Environment libraries, number, mode;
};

/// The processes that `parent` has started, by rank.
std::vector<pid_t> ranks_of(pid_t parent) {
  std::vector<pid_t> ranks;
  const std::string task = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent);
  std::ifstream children(task + "/children");
  for (pid_t pid = 0; children >> pid;) ranks.push_back(pid);
  return ranks;
}

TEST_CASE("ranks on emulated GPUs train with the bits of one process on the CPU", "[cli][gpu]") {
  struct Way {
    std::string name, precision, strategy;
    int ranks;
    std::string device, folder, mode;
    Words more = {};
    std::unique_ptr<Child> child = {};
  };
  const std::string cuda = OLMO_FAKE_CUDA, rocm = OLMO_FAKE_ROCM;
  Way ways[] = {
      {"full", "fp32", "fsdp", 3, "rocm", rocm, "delayed"},
      {"copies", "fp32", "ddp", 2, "cuda", cuda, "ahead"},
      {"kept",
       "amp_bf16",
       "fsdp",
       2,
       "cuda",
       cuda,
       "delayed",
       {"fsdp.sharding_strategy=SHARD_GRAD_OP"}},
      {"autocast", "amp_bf16", "ddp", 3, "cuda", cuda, "delayed"},
      {"hybrid",
       "amp_bf16",
       "fsdp",
       4,
       "cuda",
       cuda,
       "delayed",
       {"fsdp.sharding_strategy=HYBRID_SHARD", "fsdp.hybrid_sharding_num_model_replicas=2"}}};
  const Scene scene;
  for (auto& way : ways) {
    INFO(way.name);
    const Words how =
        with(kShort, {"precision=" + way.precision, "distributed_strategy=" + way.strategy});
    const auto one = scene.train("one-" + way.name, how);
    INFO(one.err);
    REQUIRE(one.code == 0);
    const Gpus gpus(way.ranks, way.mode, way.folder);
    const auto ended = scene.train(
        way.name,
        with(with(how, way.more), {"device=" + way.device, "--nproc", std::to_string(way.ranks)}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto found = scene.record(way.name);
    CHECK(found.proof() == scene.record("one-" + way.name).proof());
    CHECK(found.value("SELECT count(DISTINCT processor) FROM ranks") == std::to_string(way.ranks));
  }
}

TEST_CASE("a run goes from three GPUs to two and to the CPU with the same chain and state",
          "[cli][gpu]") {
  const Scene scene;
  const Words how = {"stop_at=6", "hash_interval=6"};
  REQUIRE(scene.train("whole", how).code == 0);
  const Gpus gpus(3);
  const auto go = [&](const Words& more) {
    const auto ended = scene.train("run", with(how, more));
    INFO(ended.err);
    return ended.code;
  };
  REQUIRE(go({"stop_after=2", "device=cuda", "--nproc", "3"}) == 75);
  REQUIRE(go({"stop_after=2", "device=cuda", "--nproc", "2", "--resume", "latest"}) == 75);
  REQUIRE(go({"--resume", "latest"}) == 0);
  CHECK(scene.record("run").proof() == scene.record("whole").proof());
  CHECK(scene.record("run").steps() == "1..6");
}

TEST_CASE("a rank whose process is killed while GPUs wait for it is named, and all end with 75",
          "[cli][gpu]") {
  const Scene scene;
  for (const char* mode : {"now", "delayed"}) {
    const std::string run = std::string("run-") + mode;
    const Gpus gpus(2, mode);
    Child child(scene.command(run, {"max_duration=1000000000", "save_interval=2", "device=cuda",
                                    "--nproc", "2"}),
                scene / (run + "-log"));
    REQUIRE(happens([&] { return fs::exists(scene / run / "step2") || !child.running(); }));
    REQUIRE(child.running());
    const auto ranks = ranks_of(child.pid());
    REQUIRE(ranks.size() == 2);
    ::kill(ranks[1], SIGKILL);
    const auto ended = child.wait();
    INFO(mode << ": " << ended.err);
    CHECK(ended.code == 75);
    CHECK(ended.says("rank 1 (process " + std::to_string(ranks[1])));
    CHECK_FALSE(ended.says("is ended now"));  // it has ended by itself
  }
}

TEST_CASE("a rank that is stopped while GPUs wait for it is named, and all end with 75",
          "[cli][gpu]") {
  const Scene scene;
  const Gpus gpus(2);
  Child child(scene.command("run", {"max_duration=1000000000", "save_interval=2", "device=cuda",
                                    "--nproc", "2", "--rank-timeout", "5"}),
              scene / "log");
  REQUIRE(happens([&] { return fs::exists(scene / "run" / "step2") || !child.running(); }));
  REQUIRE(child.running());
  const auto ranks = ranks_of(child.pid());
  REQUIRE(ranks.size() == 2);
  ::kill(ranks[1], SIGSTOP);
  const auto ended = child.wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(ended.says("rank 1 (process " + std::to_string(ranks[1])));
  CHECK(ended.says("as by SIGSTOP"));
  CHECK_FALSE(ended.says("is ended now"));  // it has ended by itself
}

TEST_CASE("evaluators of a training on GPUs, and an evaluation on them, have the CPU's numbers",
          "[cli][gpu]") {
  const Scene scene;
  const std::string tokens = (scene / "tokens.npy").string();
  const Words how = {"stop_at=2", "eval_interval=1", "device_eval_batch_size=3",
                     "evaluators=[{label: held, type: lm, data: {paths: [" + tokens +
                         "]}, subset_num_batches: 2}]"};
  const std::string nll =
      "SELECT hex(nll) FROM evaluation_documents d JOIN evaluations e USING "
      "(evaluation_id) ORDER BY e.step, document_index";
  REQUIRE(scene.train("cpu", how).code == 0);
  const auto numbers = scene.record("cpu").rows(nll);
  REQUIRE(numbers.size() > 2);
  const Gpus gpus(2);
  for (const std::string strategy : {"FULL_SHARD", "NO_SHARD"}) {
    const auto ended = scene.train(
        strategy, with(how, {"device=cuda", "--nproc", "2", "fsdp.sharding_strategy=" + strategy}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(scene.record(strategy).rows(nll) == numbers);
  }
  const auto evaluate = [&](const std::string& name, const Words& more) {
    return harness(scene / name, with({"eval", scene / "cpu", "--perplexity", "held=" + tokens,
                                       "--db", scene / (name + ".db")},
                                      more));
  };
  const Words on_gpus = {"--device", "cuda", "--nproc"};
  REQUIRE(evaluate("alone", {}).code == 0);
  const auto ended = evaluate("two", with(on_gpus, {"2"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(Record(scene / "two.db").rows(nll) == Record(scene / "alone.db").rows(nll));
  check_refused(evaluate("three", with(on_gpus, {"3"})), 2,
                {"the driver shows 2 GPUs to each of 3"});
}

TEST_CASE("ranks of an evaluation that would share a GPU are refused", "[cli][gpu]") {
  const Scene scene;
  const Gpus gpus(1);
  check_refused(
      harness(scene / "shared",
              {"eval", kGolden / "model", "--perplexity", "held=" + (scene / "tokens.npy").string(),
               "--db", scene / "shared.db", "--device", "cuda", "--nproc", "2"}),
      2, {"ranks 0 and 1 have the same GPU", "expected one for each rank"});
  CHECK_FALSE(fs::exists(scene / "shared.db"));
}

TEST_CASE("a run of ranks on GPUs is audited by one process on the CPU, and the other way round",
          "[cli][gpu]") {
  const Scene scene;
  const Gpus gpus(2);
  for (const std::string device : {"cuda", "cpu"}) {
    INFO(device);
    const auto trained =
        scene.train(device, {"stop_at=3", "hash_interval=1", "trace_interval=2",
                             "precision=amp_bf16", "device=" + device, "--nproc", "2"});
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const auto ended = harness(scene / (device + "-audit"),
                               {"audit", scene / device, "--checkpoints", scene / device,
                                "--device", device == "cpu" ? "cuda" : "cpu"});
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.find("AUDIT PASSED: every bit agrees") != std::string::npos);
  }
}

TEST_CASE("ranks without a GPU each end with one sentence", "[cli][gpu]") {
  const Scene scene;
  {
    const Gpus gpus(1);
    check_refused(scene.train("one", {"device=cuda", "--nproc", "2"}), 2,
                  {"ranks 0 and 1 have the same GPU", "expected one for each rank"});
  }
  {
    const Gpus gpus(2);
    check_refused(scene.train("few", {"device=cuda", "--nproc", "3"}), 2,
                  {"the driver shows 2 GPUs to each of 3 ranks", "expected one for each rank"});
  }
}

TEST_CASE("ranks without the library that connects their GPUs end with one sentence and no record",
          "[cli][gpu]") {
  struct Vendor {
    std::string device, libraries, missing, name;
  };
  const Vendor vendors[] = {{"cuda", OLMO_FAKE_CUDA, "libnccl.so.2", "NCCL"},
                            {"rocm", OLMO_FAKE_ROCM, "librccl.so.1", "RCCL"}};
  const Scene scene;
  for (const auto& vendor : vendors) {
    std::string problem;
    if (SharedLibrary::open({vendor.missing}, &problem)) continue;  // this machine has it
    const fs::path folder = scene / (vendor.device + "-libraries");
    fs::create_directory(folder);
    for (const auto& entry : fs::directory_iterator(vendor.libraries)) {
      if (entry.path().filename() != vendor.missing)
        fs::create_symlink(entry.path(), folder / entry.path().filename());
    }
    const Gpus gpus(2, "now", folder.string());
    check_refused(scene.train(vendor.device, {"device=" + vendor.device, "--nproc", "2"}), 2,
                  {vendor.name, vendor.missing, "is not here", "OLMO_GPU_LIBRARIES"});
    CHECK_FALSE(fs::exists(scene / vendor.device / "run.db"));
  }
}

}  // namespace
}  // namespace olmo::test
