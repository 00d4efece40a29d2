#include "report/training/identity.h"

#include <algorithm>

#include "core/hash.h"
#include "report/run_of_six.h"
#include "store/plain_records.h"
#include "store/runs/op_traces.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::kFastPolicy;
using olmo::test::kPortablePolicy;
using olmo::test::run_of_six;
using olmo::test::run_under;

namespace {

/// The chain parts at this step, as it does whatever differs there.
void part_chain(store::RecordedRun& run, std::int64_t step) {
  for (auto i = static_cast<std::size_t>(step - 1); i < run.steps.size(); ++i)
    run.steps.chain[i] += 1000;
}

/// State hashes of a network of eleven blocks at a step, in the order of the database; `other`
/// names the tensors whose hashes are others.
void hash_state(store::RecordedRun& run, std::int64_t step,
                const std::vector<std::string>& other = {}) {
  for (const char* part : {"model/", "optim/exp_avg/"}) {
    for (const char* name :
         {"transformer.blocks.10.ff_out.weight", "transformer.blocks.2.ff_out.weight",
          "transformer.ln_f.weight", "transformer.wte.weight"}) {
      const std::string full = std::string(part) + name;
      const bool is_other = std::find(other.begin(), other.end(), full) != other.end();
      const auto slash = full.find('/');
      run.state_hashes[step].push_back(
          {full.substr(0, slash), full.substr(slash + 1), is_other ? "1" : "0"});
    }
  }
}

void seal(store::RecordedRun& run, std::int64_t step, const std::string& digest) {
  run.state_hashes[step].push_back({"seal", "state", digest});
}

/// A database with the traces of one run. An operation's digest is that of its value.
class TraceFile {
 public:
  TraceFile() : db_(store::RunDb::open(directory_ / "run.db", store::OpenMode::kCreate)) {
    id_ = db_.begin_run(test::plain_run("test"), test::plain_attempt(), {});
  }
  void trace(std::int64_t step, const std::string& loss = "same") {
    const std::vector<OpDigest> operations = {{"forward/embedding", sha256("embedding")},
                                              {"forward/loss", sha256(loss)}};
    store::record_trace(db_.records(), id_, {.attempt = 1, .audit = 0}, step, operations);
  }
  [[nodiscard]] TracedRun run() { return {db_.records(), id_}; }

 private:
  test::TemporaryDirectory directory_;
  store::RunDb db_;
  std::string id_;
};

/// A database with a run of one step, after which the weights have this norm.
class StepFile {
 public:
  explicit StepFile(double param_norm)
      : db_(store::RunDb::open(directory_ / "run.db", store::OpenMode::kCreate)) {
    const Digest experiment = sha256("experiment");
    store::RunRecord run = test::plain_run("test");
    run.experiment_digest = experiment.hex();
    run.chain_format = kChainFormat;
    id_ = db_.begin_run(run, test::plain_attempt(), {});
    const Digest batch = sha256("batch");
    const Digest chain = chain_next(chain_start(experiment), {1, batch, batch, 2.0, {}, 0.5F});
    store::StepRecord row{.step = 1,
                          .tokens = 8,
                          .ce_loss = 2,
                          .z_loss = {},
                          .loss = 2,
                          .grad_norm = 0.5,
                          .max_grad_norm = {},
                          .clipping_rate = {},
                          .param_norm = param_norm,
                          .mfu = {},
                          .batch_hash = batch.hex(),
                          .loss_hash = batch.hex(),
                          .chain_hash = chain.hex()};
    db_.record_step(row);
    db_.flush();
  }
  [[nodiscard]] TracedRun run() { return {db_.records(), id_}; }

 private:
  test::TemporaryDirectory directory_;
  store::RunDb db_;
  std::string id_;
};

}  // namespace

TEST_CASE("identity names the last step that agrees and the field that parts", "[report]") {
  const store::RecordedRun a = run_of_six();
  const Identity same = find_identity(a, a);
  CHECK(same.known);
  CHECK(same.equal_steps == 6);
  CHECK(same.first_different == 0);

  store::RecordedRun b = a;
  part_chain(b, 4);
  SECTION("in the batch") {
    b.steps.batch[3] = b.steps.batch[5] = 99;
    const Identity found = find_identity(a, b);
    CHECK(found.first_field == "batch_hash");
    CHECK(found.equal_batches == 4);
  }
  SECTION("in the loss, before the gradient norm") {
    b.steps.loss[3] += 1e-12;
    b.steps.grad_norm[3] = 0.25;
    CHECK(find_identity(a, b).first_field == "ce_loss");
  }
  SECTION("in the gradient norm") {
    b.steps.grad_norm[3] = 0.25;
    CHECK(find_identity(a, b).first_field == "grad_norm");
  }
  SECTION("in the losses of micro-batches, which alone are in a chain and in no other column") {
    CHECK(find_identity(a, b).first_field == "loss_hash");
  }
  SECTION("in another value of the step") {
    b.steps.values[3] = 99;
    CHECK(find_identity(a, b).first_field == kSomeValue);
  }
  const Identity found = find_identity(a, b);
  CHECK(found.first_different == 4);
  CHECK(found.equal_steps == 3);
  CHECK(found.equal_through == 3);
  CHECK(found.common_steps == 6);
}

TEST_CASE("of runs that begin after step 1 or lack steps, those that agree are counted",
          "[report]") {
  store::RecordedRun a = run_of_six();
  const std::vector<std::int64_t> steps = {101, 102, 105, 106, 107, 108};
  a.steps.step = steps;
  store::RecordedRun b = a;
  const Identity same = find_identity(a, b);
  CHECK(same.equal_steps == 6);
  CHECK(same.equal_through == 108);
  part_chain(b, 4);
  b.steps.loss[3] += 1;
  const Identity found = find_identity(a, b);
  CHECK(found.equal_steps == 3);
  CHECK(found.equal_through == 105);
  CHECK(found.first_different == 106);
}

TEST_CASE("what the last update changed parts runs whose chains agree to the end", "[report]") {
  const store::RecordedRun a = run_of_six();
  store::RecordedRun b = a;
  b.steps.values[5] = 99;
  const Identity found = find_identity(a, b);
  CHECK(found.first_different == 6);
  CHECK(!found.in_chain());
  CHECK(!found.same_training());
}

TEST_CASE("runs that part beside their chains and are equal again contradict each other",
          "[report]") {
  store::RecordedRun a = run_under(kPortablePolicy), b = a;
  b.steps.values[2] = 99;
  const auto contradiction = [&] { return contradiction_of(find_identity(a, b)); };
  SECTION("in a later step") {
    hash_state(a, 6);
    hash_state(b, 6, {"model/transformer.wte.weight"});
    CHECK(contradiction() == "");
    a.state_hashes.clear();
    const std::string found = contradiction();
    CHECK(
        found.starts_with("step 3 differs in a recorded value, though both sides have the same "));
    CHECK(found.find("at step 4:") != std::string::npos);
  }
  SECTION("in the state after the last step") {
    for (const std::size_t i : {3, 4, 5}) b.steps.values[i] = 99;
    CHECK(contradiction() == "");
    a.state_hashes[6] = b.state_hashes[6] = {{"model", "a", "1"}};
    CHECK(contradiction().find("at step 6:") != std::string::npos);
    b.state_hashes[6] = {{"model", "a", "2"}};
    CHECK(contradiction() == "");
  }
  SECTION("but not where the chains part, or what rounds was computed") {
    CHECK(contradiction() != "");
    b.attempts[0].policy = kFastPolicy;
    CHECK(contradiction() == "");
    b.attempts = a.attempts;
    part_chain(b, 3);
    CHECK(contradiction() == "");
  }
}

TEST_CASE("the column in which equal chains part is read from the rows", "[report]") {
  StepFile file_a(1.0), file_b(1.5);
  const auto a = store::read_run(file_a.run().records, file_a.run().run_id);
  const auto b = store::read_run(file_b.run().records, file_b.run().run_id);
  const Identity found = find_identity(a, b, file_a.run(), file_b.run());
  CHECK(found.first_different == 1);
  CHECK(found.first_field == "param_norm");
  CHECK(find_identity(a, a, file_a.run(), file_a.run()).same_training());
}

TEST_CASE("an operation whose output differs parts runs of which nothing else tells", "[report]") {
  const store::RecordedRun run = run_of_six();
  TraceFile a, b;
  a.trace(2);
  SECTION("on both sides the same") {
    b.trace(2);
    const Identity found = find_identity(run, run, a.run(), b.run());
    CHECK(found.same_training());
    CHECK(!found.operation);
  }
  SECTION("another") {
    b.trace(2, "other");
    const Identity found = find_identity(run, run, a.run(), b.run());
    CHECK(found.same_steps_and_states());
    CHECK(!found.same_training());
    CHECK(found.operation->operation == "forward/loss");
  }
}

TEST_CASE("chains of two experiments begin apart, so only their fields are compared", "[report]") {
  const store::RecordedRun a = run_of_six();
  store::RecordedRun b = a;
  b.experiment_digest = "another";
  part_chain(b, 1);
  CHECK(find_identity(a, b).equal_steps == 6);
  b.steps.chain.clear();
  CHECK(!find_identity(a, b).known);
}

TEST_CASE("chains of two formats are not compared, their losses are", "[report]") {
  store::RecordedRun a = run_of_six(), b = a;
  b.chain_format = 2;
  for (auto* hashes : {&b.steps.batch, &b.steps.chain})
    for (auto& hash : *hashes) hash += 5000;
  const Identity same = find_identity(a, b);
  CHECK(same.equal_steps == 6);
  CHECK(same.first_different == 0);
  CHECK_FALSE(same.same_format);
  CHECK_FALSE(same.same_training());  // nothing says that the batches were the same
  b.steps.loss[3] += 1e-12;
  const Identity parted = find_identity(a, b);
  CHECK(parted.first_different == 4);
  CHECK(parted.first_field == "ce_loss");
}

TEST_CASE("the tensors that differ are named in the order of the network", "[report]") {
  store::RecordedRun a = run_of_six(), b = a;
  hash_state(a, 0), hash_state(b, 0);
  hash_state(a, 2), hash_state(b, 2);
  SECTION("none differs") {
    const Identity found = find_identity(a, b);
    CHECK(found.equal_state->step == 2);
    CHECK(found.equal_state->tensors == 8);
    CHECK(found.last_state->step == 2);
    CHECK(!found.parted_state);
    CHECK(found.same_training());
  }
  SECTION("some do") {
    hash_state(a, 4);
    hash_state(b, 4,
               {"optim/exp_avg/transformer.wte.weight", "model/transformer.blocks.10.ff_out.weight",
                "model/transformer.blocks.2.ff_out.weight", "model/transformer.ln_f.weight",
                "model/transformer.wte.weight", "optim/exp_avg/transformer.ln_f.weight"});
    hash_state(a, 6), hash_state(b, 6, {"model/transformer.wte.weight"});
    const Identity found = find_identity(a, b);
    CHECK(found.equal_state->step == 2);
    REQUIRE(found.parted_state);
    CHECK(found.parted_state->step == 4);
    CHECK(found.parted_state->tensors == 8);
    CHECK(found.parted_state->different == 6);
    CHECK(found.parted_state->names ==
          std::vector<std::string>{
              "model/transformer.wte.weight", "model/transformer.blocks.2.ff_out.weight",
              "model/transformer.blocks.10.ff_out.weight", "model/transformer.ln_f.weight",
              "optim/exp_avg/transformer.wte.weight"});
    CHECK(found.last_state->step == 6);
    CHECK(found.last_state->different == 1);
    CHECK(!found.same_training());
  }
  SECTION("states that only one side hashed tell nothing") {
    hash_state(b, 3, {"model/transformer.wte.weight"});
    CHECK(find_identity(a, b).last_state->step == 2);
    a.state_hashes.clear();
    CHECK(!find_identity(a, b).last_state);
  }
}

TEST_CASE("a seal is no tensor, and differs wherever the experiments do", "[report]") {
  store::RecordedRun a = run_of_six(), b = a;
  for (const std::int64_t step : {0, 2}) {
    hash_state(a, step), seal(a, step, "s");
    hash_state(b, step,
               step == 0 ? std::vector<std::string>{}
                         : std::vector<std::string>{"model/transformer.wte.weight"});
    seal(b, step, "t");
  }
  const Identity found = find_identity(a, b);
  CHECK(found.equal_state->step == 0);
  CHECK(found.equal_state->tensors == 8);
  REQUIRE(found.parted_state);
  CHECK(found.parted_state->tensors == 8);
  CHECK(found.parted_state->names == std::vector<std::string>{"model/transformer.wte.weight"});
}

TEST_CASE("an operation is looked for between the last agreement and the parting", "[report]") {
  Identity identity;
  CHECK(!parting_steps(identity));
  identity.first_different = 7;
  identity.first_field = "batch_hash";
  CHECK(!parting_steps(identity));
  const auto steps = [&] {
    return std::pair(parting_steps(identity)->after_equal, parting_steps(identity)->parted);
  };
  identity.first_field = "grad_norm";
  CHECK(steps() == std::pair<std::int64_t, std::int64_t>(7, 7));
  identity.first_field = "ce_loss";
  CHECK(steps() == std::pair<std::int64_t, std::int64_t>(6, 7));
  identity.equal_state.emplace().step = 6;
  CHECK(steps() == std::pair<std::int64_t, std::int64_t>(7, 7));
  identity.equal_state->step = 2;
  identity.parted_state.emplace().step = 4;
  CHECK(steps() == std::pair<std::int64_t, std::int64_t>(3, 4));
  identity.first_different = 0;
  CHECK(steps() == std::pair<std::int64_t, std::int64_t>(3, 4));
  identity.parted_state->step = 0;
  CHECK(!parting_steps(identity));
  identity.first_different = 1;
  CHECK(!parting_steps(identity));
}

TEST_CASE("the first operation that differs is found in the traces of both", "[report]") {
  TraceFile a, b;
  const auto find = [&] { return find_operation({4, 5}, a.run(), b.run()); };
  SECTION("no step was traced on both sides") {
    a.trace(5);
    b.trace(4);
    const TracedOperation found = find();
    CHECK(!found.traced);
    CHECK(found.operation.empty());
    CHECK(found.to_run == "olmo-harness audit RUN --steps 4..5 --trace --record");
  }
  SECTION("the step at which they part was") {
    for (TraceFile* side : {&a, &b}) side->trace(1), side->trace(4);
    a.trace(5);
    b.trace(5, "other");
    const TracedOperation found = find();
    CHECK(found.traced == 5);
    CHECK(found.operation == "forward/loss");
    CHECK(found.reason == "its output differs");
    CHECK(found.to_run.empty());
  }
  SECTION("a step before, whose loss and norm hide what differs, was") {
    a.trace(2);
    b.trace(2, "other");
    const TracedOperation found = find_operation({4, 5, 1}, a.run(), b.run());
    CHECK(found.traced == 2);
    CHECK(found.operation == "forward/loss");
    CHECK(found.to_run.empty());
    CHECK(!find_operation({4, 5, 3}, a.run(), b.run()).traced);
  }
  SECTION("only one after it was") {
    a.trace(9);
    b.trace(9, "other");
    a.trace(10);
    b.trace(10);
    const TracedOperation found = find();
    CHECK(found.traced == 9);
    CHECK(found.parted == 5);
    CHECK(found.to_run == "olmo-harness audit RUN --steps 4..5 --trace --record");
  }
  SECTION("only the one before it was, and agrees") {
    for (TraceFile* side : {&a, &b}) side->trace(4);
    const TracedOperation found = find();
    CHECK(found.traced == 4);
    CHECK(found.operation.empty());
    CHECK(found.to_run == "olmo-harness audit RUN --steps 5..5 --trace --record");
  }
  SECTION("all traces agree, though the records part") {
    for (TraceFile* side : {&a, &b}) side->trace(5);
    const TracedOperation found = find();
    CHECK(found.traced == 5);
    CHECK(found.operation.empty());
    CHECK(found.to_run.empty());
  }
}
