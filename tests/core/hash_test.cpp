#include "core/hash.h"

#include <cmath>

#include "support/catch.h"

using namespace olmo;

namespace {

StepProof a_proof() {
  StepProof proof;
  proof.step = 3;
  proof.batch = sha256("batch");
  proof.losses = losses_digest(std::vector<MicroBatchLoss>{{1.5, 0.25}, {-2.0, 0.0}});
  proof.ce_loss = 1.5;
  proof.z_loss = 0.25;
  proof.grad_norm = 2.0F;
  return proof;
}

}  // namespace

TEST_CASE("a hash is that of the bytes, in whatever parts they come", "[core]") {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes.push_back(static_cast<char>(i % 251));
  // Computed with Python's hashlib.
  const auto expected =
      Digest::from_hex("69dbee893909fa17d1be397e0c07691336fe42049c29d403467d3d4a1fc3b5a1");
  for (const std::size_t part : {1, 63, 1024, 1025, 3000, 5000}) {
    INFO("parts of " << part);
    Sha256 hash;
    for (std::size_t at = 0; at < bytes.size(); at += part) hash.update(bytes.substr(at, part));
    CHECK(hash.finish() == expected);
  }
  CHECK(Sha256().update(nullptr, 0).finish() == sha256(""));
}

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
  CHECK_FALSE(sound == changed([](StepProof& p) { p.losses = sha256("other losses"); }));
  CHECK_FALSE(sound == changed([](StepProof& p) { p.ce_loss = std::nextafter(p.ce_loss, 2.0); }));
  CHECK_FALSE(sound == changed([](StepProof& p) { p.z_loss = -*p.z_loss; }));
  CHECK_FALSE(changed([](StepProof& p) { p.z_loss = 0.0; }) ==
              changed([](StepProof& p) { p.z_loss.reset(); }));
  CHECK_FALSE(sound ==
              changed([](StepProof& p) { p.grad_norm = std::nextafterf(p.grad_norm, 0.0F); }));
}

TEST_CASE("the losses of the micro-batches enter in their order and with their number", "[core]") {
  using Losses = std::vector<MicroBatchLoss>;
  const Digest sound = losses_digest(Losses{{1, 2}, {3, 4}});
  CHECK_FALSE(sound == losses_digest(Losses{{3, 4}, {1, 2}}));
  CHECK_FALSE(sound == losses_digest(Losses{{1, 2}}));
  CHECK_FALSE(sound == losses_digest(Losses{{1, 2}, {3, std::nextafter(4.0, 5.0)}}));
}

TEST_CASE("links have the bytes that the header defines", "[core]") {
  // Computed with Python's hashlib from the definition.
  const Digest start = chain_start(sha256("experiment"));
  StepProof proof = a_proof();
  CHECK(proof.losses.hex() == "040f8e20719ffdbbd5722491f095e6448c1e9e7fa7be1a091397a98d6d0a7e4e");
  CHECK(start.hex() == "5c1352a18ea89ec542536b818f974a9f35312ee822920a1a9cf8b7f0f7a01b86");
  CHECK(chain_next(start, proof).hex() ==
        "31ab536e2cd983985e1919600244bde8fc2e9bccea398ab35e93fd392b6a5b79");
  proof.z_loss.reset();
  CHECK(chain_next(start, proof).hex() ==
        "9200eeaf37188b2ff1d64f4485a65e69802199d31b2746dcfd052d76f1bf26d3");
  const Digest start_1 = chain_start(sha256("experiment"), 1);
  CHECK(start_1.hex() == "8f8b893a66ce3c9dbcfde3b64f3de1c48f7d95213a2cca4a8d19637fa72dca0f");
  CHECK(chain_next(start_1, a_proof(), 1).hex() ==
        "b059439a003e09b5a86aef471f5eb3efc4b5ab283c9c693953db7dc43e111133");
}
