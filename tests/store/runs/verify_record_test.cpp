#include "store/runs/verify_record.h"

#include <cmath>

#include "core/hash.h"
#include "support/catch.h"

namespace olmo::store {
namespace {

/// A record whose proofs are sound, with the state hashed at step 2.
struct SoundRecord {
  RunRecord run = {.run_id = "r",
                   .name = "test",
                   .config = "{}",
                   .experiment_digest = sha256("experiment").hex(),
                   .chain_format = kChainFormat};
  std::map<std::int64_t, StepRecord> steps;
  std::map<std::int64_t, std::vector<StateHash>> hashes;
  std::map<std::int64_t, std::string> seals;
  std::map<std::int64_t, Digest> links;

  explicit SoundRecord(std::int64_t format = kChainFormat) {
    run.chain_format = format;
    Digest chain = chain_start(sha256("experiment"), format);
    for (std::int64_t step = 1; step <= 5; ++step) {
      StepRecord& row = steps[step];
      row.step = step;
      row.tokens = 8 * step;
      row.ce_loss = row.loss = 1.0 / static_cast<double>(step);
      row.grad_norm = 0.5;
      const Digest batch = sha256(std::to_string(step));
      const Digest losses = sha256("losses " + std::to_string(step));
      row.batch_hash = batch.hex();
      if (format > 1) row.loss_hash = losses.hex();
      chain = chain_next(chain, {step, batch, losses, row.ce_loss, row.z_loss, 0.5F}, format);
      row.chain_hash = chain.hex();
      links[step] = chain;
    }
    hashes[2] = {{"model", "a", "1"}, {"optim", "exp_avg/a", "2"}};
    seals[2] = seal_of(hashes[2], links.at(2)).hex();
  }

  [[nodiscard]] std::vector<Finding> verify(std::int64_t first = 0) const {
    std::vector<Finding> findings;
    StepVerifier verifier(run, first);
    for (const auto& [step, row] : steps) verifier.add(row, findings);
    verify_seals({hashes, seals, links, run.chain_format > 1, first}, findings);
    verify_end(run, verifier.step(), findings);
    return findings;
  }
};

/// The step of the first finding once row 3 was altered; 0: none.
template <class Alter>
std::int64_t broken_at(const Alter& alter, std::int64_t format = kChainFormat) {
  SoundRecord record(format);
  alter(record.steps.at(3));
  const auto findings = record.verify();
  return findings.empty() ? 0 : findings.front().step;
}

}  // namespace

TEST_CASE("a sound record has no findings, in each format of the chain", "[store]") {
  CHECK(SoundRecord().verify().empty());
  CHECK(SoundRecord(1).verify().empty());
}

TEST_CASE("each field of the chain proves itself", "[store]") {
  CHECK(broken_at([](auto& row) { row.ce_loss += 1e-15; }) == 3);
  CHECK(broken_at([](auto& row) { row.z_loss = 0.0; }) == 3);        // there was none
  CHECK(broken_at([](auto& row) { row.grad_norm += 1e-12; }) == 3);  // below the chain's precision
  CHECK(broken_at([](auto& row) { row.batch_hash = sha256("x").hex(); }) == 3);
  CHECK(broken_at([](auto& row) { row.loss_hash = sha256("x").hex(); }) == 3);
  CHECK(broken_at([](auto& row) { row.loss_hash.clear(); }) == 3);
  CHECK(broken_at([](auto& row) { row.chain_hash = sha256("x").hex(); }) == 3);
  CHECK(broken_at([](auto& row) { row.chain_hash = "no digest"; }) == 3);
  CHECK(broken_at([](auto& row) { row.ce_loss += 1e-15; }, 1) == 3);
  CHECK(broken_at([](auto& row) { row.z_loss = 1e-9; }, 1) == 3);
}

TEST_CASE("the loss proves itself by its terms", "[store]") {
  const auto loss_of = [](std::optional<double> z_loss, double loss) {
    SoundRecord record;
    StepRecord& row = record.steps.at(5);
    row.z_loss = z_loss;
    row.loss = loss;
    const StepProof proof{5, sha256("5"), sha256("losses 5"), row.ce_loss, z_loss, 0.5F};
    row.chain_hash = chain_next(record.links.at(4), proof).hex();
    const auto findings = record.verify();
    return findings.empty() ? "" : findings.front().sentence;
  };
  CHECK(loss_of(0.25, 0.2 + 0.25).empty());
  CHECK(loss_of(0.25, 0.2) ==
        "step 5: its loss is 0.20000000000000001, and ce_loss and z_loss add up to "
        "0.45000000000000001: the column loss was altered");
  CHECK(loss_of({}, 0.25).find("step 5: its loss is 0.25, and its ce_loss is 0.2") == 0);
  CHECK_FALSE(loss_of({}, std::nan("")).empty());
}

TEST_CASE("another experiment or another format is found at the first step", "[store]") {
  SoundRecord record;
  record.run.experiment_digest = sha256("another").hex();
  CHECK(record.verify().front().step == 1);
  SoundRecord older;
  older.run.chain_format = 1;
  CHECK(older.verify().front().step == 1);
}

TEST_CASE("missing and repeated steps are named", "[store]") {
  SoundRecord record;
  record.steps.erase(4);
  const auto findings = record.verify();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].step == 4);
  CHECK(findings[0].quantity == "step");

  SoundRecord twice;
  twice.steps.at(4).step = 3;
  CHECK(twice.verify().front().sentence == "step 3: comes after step 3");
}

TEST_CASE("of a run that took over a checkpoint the first link is taken as it is", "[store]") {
  SoundRecord record;
  record.steps.erase(1);
  record.steps.erase(2);
  CHECK(record.verify(2).empty());
  CHECK(record.verify(1).front().sentence == "step 2: the record lacks it");
  record.steps.at(4).ce_loss += 1e-15;
  CHECK(record.verify(2).front().step == 4);
}

TEST_CASE("the first link of a run from a checkpoint follows from that of the checkpoint",
          "[store]") {
  const auto findings = [](const Digest& link) {
    SoundRecord record;
    std::vector<Finding> found;
    StepVerifier verifier(record.run, 2, link);
    verifier.add(record.steps.at(3), found);
    return found;
  };
  CHECK(findings(SoundRecord().links.at(2)).empty());
  const auto wrong = findings(sha256("another"));
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].step == 3);
  CHECK(wrong[0].quantity == "chain_hash");
}

TEST_CASE("an altered, added or missing hash of the state breaks its seal", "[store]") {
  const auto broken = [](const auto& alter) {
    SoundRecord record;
    alter(record.hashes.at(2));
    const auto findings = record.verify();
    return findings.size() == 1 && findings[0].step == 2 && findings[0].quantity == "state_hashes";
  };
  CHECK(broken([](auto& hashes) { hashes[0].sha256 = "3"; }));
  CHECK(broken([](auto& hashes) { hashes[1].name = "exp_avg/b"; }));
  CHECK(broken([](auto& hashes) { hashes.pop_back(); }));
  CHECK(broken([](auto& hashes) { hashes.push_back({"model", "b", "4"}); }));
}

TEST_CASE("an altered hash of the initial weights breaks its seal", "[store]") {
  SoundRecord record;
  record.links[0] = chain_start(sha256("experiment"), kChainFormat);
  record.hashes[0] = {{"model", "a", "0"}};
  record.seals[0] = seal_of(record.hashes[0], record.links[0]).hex();
  REQUIRE(record.verify().empty());
  record.hashes[0][0].sha256 = "3";
  CHECK(record.verify().size() == 1);
}

TEST_CASE("a seal, the hashes below it or their step that is gone is named", "[store]") {
  const auto sentence = [](const auto& remove, std::int64_t format = kChainFormat) {
    SoundRecord record(format);
    remove(record);
    const auto findings = record.verify();
    return findings.empty() ? "" : findings.back().sentence;
  };
  const auto no_seal = [](SoundRecord& record) { record.seals.clear(); };
  CHECK(sentence(no_seal) == "step 2: the seal of the state's hashes is missing");
  CHECK(sentence(no_seal, 1).empty());  // older records have none
  CHECK(sentence([](SoundRecord& record) { record.hashes.clear(); }).find("are missing") !=
        std::string::npos);
  CHECK(sentence([](SoundRecord& record) { record.links.erase(2); }).find("the step itself") !=
        std::string::npos);
}

TEST_CASE("a finished run that lacks its last steps is damaged, one that was stopped is not",
          "[store]") {
  SoundRecord record;
  record.run.max_steps = 6;
  record.run.status = "stopped";
  CHECK(record.verify().empty());
  record.run.status = "finished";
  const auto findings = record.verify();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].sentence == "the run finished at step 6, and the record ends at step 5");
}

TEST_CASE("every value that the training decides enters the digest of a step, and is named",
          "[store]") {
  StepRecord row;
  row.step = 1;
  row.max_grad_norm = 1.0;
  row.clipping_rate = 0.0;
  visit_computed_values([&](const char* column, auto member) {
    StepRecord other = row;
    other.*member = 3;
    const bool setting = column == std::string("max_grad_norm");
    INFO(column);
    CHECK((digest_of_values(other) == digest_of_values(row)) == setting);
    CHECK(first_value_that_differs(row, other) == (setting ? "" : column));
  });
  StepRecord other = row;
  other.seconds = 7;
  CHECK(digest_of_values(other) == digest_of_values(row));
}

}  // namespace olmo::store
