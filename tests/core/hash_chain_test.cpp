#include "core/hash_chain.h"

#include <cmath>

#include "support/catch.h"

using namespace olmo;

namespace {

StepProof a_proof() {
  StepProof proof;
  proof.step = 3;
  proof.batch = sha256("batch");
  proof.ce_loss = 1.5;
  proof.z_loss = 0.25;
  proof.grad_norm = 2.0F;
  return proof;
}

}  // namespace

TEST_CASE("each part of a step changes the chain", "[core]") {
  const Digest start = chain_start(sha256("experiment"));
  const Digest sound = chain_next(start, a_proof());
  CHECK(sound == chain_next(start, a_proof()));
  CHECK_FALSE(sound == chain_next(chain_start(sha256("another")), a_proof()));
  const auto changed = [&](auto&& change) {
    StepProof proof = a_proof();
    change(proof);
    return chain_next(start, proof);
  };
  CHECK_FALSE(sound == changed([](StepProof& p) { p.step = 4; }));
  CHECK_FALSE(sound == changed([](StepProof& p) { p.batch = sha256("other batch"); }));
  CHECK_FALSE(sound == changed([](StepProof& p) { p.ce_loss = std::nextafter(p.ce_loss, 2.0); }));
  CHECK_FALSE(sound == changed([](StepProof& p) { p.z_loss = -p.z_loss; }));
  CHECK_FALSE(sound ==
              changed([](StepProof& p) { p.grad_norm = std::nextafterf(p.grad_norm, 0.0F); }));
}
