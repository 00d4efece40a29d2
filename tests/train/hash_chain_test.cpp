#include "train/hash_chain.h"

#include <cmath>

#include "support/catch.h"

using namespace olmo;
using namespace olmo::train;

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

TEST_CASE("each part of a step changes the chain", "[train]") {
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

TEST_CASE("tensors are hashed by their bytes, each under its name", "[train]") {
  const at::Tensor a = at::ones({3});
  at::Tensor b = at::ones({3});
  b.data_ptr<float>()[2] = std::nextafterf(1.0F, 2.0F);
  const auto hashes = hash_tensors("model", {{"a", a}, {"same", a.clone()}, {"b", b}});
  REQUIRE(hashes.size() == 3);
  CHECK(hashes[0].part == "model");
  CHECK(hashes[2].name == "b");
  CHECK(hashes[0].sha256 == hashes[1].sha256);
  CHECK(hashes[0].sha256 != hashes[2].sha256);
  CHECK(hashes[0].sha256 ==
        sha256(std::string_view(static_cast<const char*>(a.const_data_ptr()), 12)).hex());
}
