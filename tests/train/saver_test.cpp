#include "train/saver.h"

#include <cmath>

#include "cli/training.h"
#include "config/train_config.h"
#include "core/compute/libtorch.h"
#include "core/compute/named_tensors.h"
#include "core/hash.h"
#include "ops/gpu/emulated.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "support/catch.h"
#include "support/host_memory.h"

namespace olmo::train {
namespace {

using Catch::Matchers::Contains;

/// The tiny training at its beginning, with a place for what it makes.
struct Training {
  test::TemporaryDirectory folder;
  std::string tokens = (folder / "tokens.npy").string();
  std::optional<store::RunLock> lock;
  std::optional<store::RunDb> db;
  std::optional<Stepper> stepper;
  std::unique_ptr<dist::Communicator> ranks = dist::alone();
  std::optional<Recorder> recorder;

  explicit Training(const test::Words& overrides = {},
                    const Policy& policy = resolve_policy("portable", "auto", 1)) {
    test::write_tokens(tokens, test::token_ids<std::uint16_t>());
    test::Words words = {"data.paths=[" + tokens + "]"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    const auto config =
        config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", words).config;
    lock.emplace(folder / "run");
    db.emplace(store::RunDb::open(folder / "run.db", store::OpenMode::kCreate));
    store::AttemptRecord attempt;
    attempt.policy = attempt.build = attempt.environment = "{}";
    db->begin_run({.name = "run", .config = "{}", .experiment_digest = ""}, attempt, {});
    stepper.emplace(config, policy, data::BatchSource(config::batch_config(config)));
    stepper->init_weights();
    recorder.emplace(folder / "run", *lock, *db);
  }

  void step() { stepper->update(stepper->gradients()); }
  [[nodiscard]] std::size_t checkpoints() const {
    return store::list_checkpoints(folder / "run").size();
  }
};

Digest digest_of(const NamedTensors& tensors) {
  std::string bytes;
  for (const auto& [name, tensor] : tensors) {
    const auto of_tensor = host_bytes(tensor);
    bytes += name;
    bytes.append(reinterpret_cast<const char*>(of_tensor.data()), of_tensor.size());
  }
  return sha256(bytes);
}

TEST_CASE("the state after the last step is saved, unless a checkpoint holds it", "[train]") {
  Training training({"save_interval=2"});
  Saver saver(*training.stepper, *training.recorder, *training.ranks, false);
  training.step();
  saver.save_if_due(saver.has_ended());
  CHECK_FALSE(saver.saved());
  training.step();
  saver.save_if_due(saver.has_ended());
  saver.save_last();
  REQUIRE(saver.saved());
  CHECK(saver.saved()->filename() == "step2");
  CHECK(training.checkpoints() == 1);
  training.step();
  saver.save_last();
  CHECK(training.checkpoints() == 2);
}

TEST_CASE("saves may fail as often in a row as the config allows", "[train]") {
  Training training({"save_failures_allowed=1", "save_interval=1"});
  Saver saver(*training.stepper, *training.recorder, *training.ranks, false);
  training.step();
  std::ofstream(training.folder / "run" / "step1") << "in the way";
  saver.save_first({});
  CHECK_NOTHROW(saver.finish_first());
  saver.save_first({});
  CHECK_THROWS_WITH(saver.finish_first(), Contains("`save_failures_allowed` is 1"));
}

TEST_CASE("the first save holds what step 1 starts from, which is computed meanwhile", "[train]") {
  Training training;
  const auto initial = digest_of(training.stepper->parameters());
  Saver saver(*training.stepper, *training.recorder, *training.ranks, false);
  saver.save_first(training.stepper->state_hashes());
  const StepGradients gradients = training.stepper->gradients();
  saver.finish_first();
  training.stepper->update(gradients);
  REQUIRE(saver.saved());
  CHECK(digest_of(store::CheckpointReader(*saver.saved()).read("model")) == initial);
  CHECK(digest_of(training.stepper->parameters()) != initial);
}

TEST_CASE("no checkpoint is made of a state that is not finite", "[train]") {
  Training training;
  Saver saver(*training.stepper, *training.recorder, *training.ranks, false);
  training.step();
  const auto [name, tensor] = training.stepper->parameters().front();
  mutable_host_span<float>(tensor)[3] = NAN;
  CHECK_THROWS_WITH(saver.save_last(), Contains(name + " is not finite; no checkpoint is made"));
  CHECK(training.checkpoints() == 0);
}

TEST_CASE("no checkpoint is made of moments that are not finite", "[train]") {
  Training training;
  Saver saver(*training.stepper, *training.recorder, *training.ranks, false);
  training.step();
  const optim::OptimState state = training.stepper->optim_state();
  const auto moment = std::ranges::find_if(
      state.tensors, [](const auto& named) { return named.name.starts_with("exp_avg"); });
  REQUIRE(moment != state.tensors.end());
  mutable_host_span<float>(moment->tensor)[3] = NAN;
  CHECK_THROWS_WITH(saver.save_last(),
                    Contains(moment->name + " is not finite; no checkpoint is made"));
}

TEST_CASE("of a GPU's state one copy is made on the host, by whichever save", "[train][gpu]") {
  const ops::emulated::Mode now("now");
  Training training({"device=cuda", "save_interval=1", "save_overwrite=true", "model.d_model=256",
                     "model.vocab_size=32768", "model.embedding_size=null", "model.n_layers=1"},
                    ops::emulated::policy_of(Device::kCuda));
  std::int64_t state = 0;
  for (const StateTensor& tensor : training.stepper->owned_state())
    state += static_cast<std::int64_t>(tensor.owned.nbytes());
  // Half a state is more than what a save takes besides, some 25 MB, and more on busy processors.
  REQUIRE(state > std::int64_t{96} << 20);
  const auto weights = training.stepper->state_hashes();
  using Use = std::function<void(Saver&)>;
  const std::vector<Use> saves = {[&](Saver& saver) {
                                    saver.save_first(weights);
                                    saver.finish_first();
                                  },
                                  [](Saver& saver) {
                                    saver.save_if_due(false);
                                    saver.settle();
                                  },
                                  [](Saver& saver) { saver.save_last(); }};
  for (const Use& save : saves) {
    Saver saver(*training.stepper, *training.recorder, *training.ranks, false);
    const auto growth = test::host_growth([&] { save(saver); });
    REQUIRE(saver.saved());
    const auto saved = store::CheckpointReader(*saver.saved()).read("model");
    CHECK(digest_of(saved) ==
          digest_of(to_host(training.stepper->policy(), training.stepper->parameters())));
    if (growth) CHECK(*growth < state * 3 / 2);
  }
}

}  // namespace
}  // namespace olmo::train
