#include "store/recorded_steps.h"

#include "core/hash_chain.h"
#include "store/state_seal.h"
#include "support/catch.h"

namespace olmo::store {
namespace {

/// A record of `count` steps whose proofs are sound, with the state hashed at step 2.
RecordedSteps sound_record(std::int64_t count) {
  RecordedSteps recorded;
  recorded.experiment_digest = sha256("experiment").hex();
  recorded.chain_format = kChainFormat;
  Digest chain = chain_start(sha256("experiment"));
  for (std::int64_t step = 1; step <= count; ++step) {
    StepRecord row;
    row.step = step;
    row.ce_loss = 1.0 / static_cast<double>(step);
    row.grad_norm = 0.5;
    row.batch_hash = sha256(std::to_string(step)).hex();
    row.loss_hash = sha256("losses " + std::to_string(step)).hex();
    chain = chain_next(chain, {step, sha256(std::to_string(step)), Digest::from_hex(row.loss_hash),
                               row.ce_loss, row.z_loss, 0.5F});
    row.chain_hash = chain.hex();
    recorded.steps.emplace(step, row);
    if (step != 2) continue;
    recorded.state_hashes[2] = {{"model", "a", "1"}, {"optim", "exp_avg/a", "2"}};
    recorded.state_seals[2] = seal_of(recorded.state_hashes[2], chain).hex();
  }
  return recorded;
}

}  // namespace

TEST_CASE("a sound record has no broken proofs", "[store]") {
  CHECK(broken_proofs(sound_record(5)).empty());
}

TEST_CASE("each field of the chain proves itself", "[store]") {
  const auto broken_at = [](const auto& alter) {
    auto recorded = sound_record(5);
    alter(recorded.steps.at(3));
    const auto findings = broken_proofs(recorded);
    return findings.empty() ? 0 : findings.front().step;
  };
  CHECK(broken_at([](auto& row) { row.ce_loss += 1e-15; }) == 3);
  CHECK(broken_at([](auto& row) { row.z_loss = 0.0; }) == 3);  // there was none
  CHECK(broken_at([](auto& row) { row.loss_hash = sha256("x").hex(); }) == 3);
  CHECK(broken_at([](auto& row) { row.grad_norm += 1e-12; }) == 3);  // below the chain's precision
  CHECK(broken_at([](auto& row) { row.batch_hash = sha256("x").hex(); }) == 3);
  CHECK(broken_at([](auto& row) { row.chain_hash = sha256("x").hex(); }) == 3);
  CHECK(broken_at([](auto& row) { row.chain_hash = "no digest"; }) == 3);
}

TEST_CASE("a missing step is named", "[store]") {
  auto recorded = sound_record(5);
  recorded.steps.erase(4);
  const auto findings = broken_proofs(recorded);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].step == 4);
}

TEST_CASE("an altered, added or missing hash of the state breaks its seal", "[store]") {
  const auto broken = [](const auto& alter) {
    auto recorded = sound_record(5);
    alter(recorded.state_hashes.at(2));
    const auto findings = broken_proofs(recorded);
    return findings.size() == 1 && findings[0].step == 2 && findings[0].quantity == "state_hashes";
  };
  CHECK(broken([](auto& hashes) { hashes[0].sha256 = "3"; }));
  CHECK(broken([](auto& hashes) { hashes[1].name = "exp_avg/b"; }));
  CHECK(broken([](auto& hashes) { hashes.pop_back(); }));
  CHECK(broken([](auto& hashes) { hashes.push_back({"model", "b", "4"}); }));
}

}  // namespace olmo::store
