#include "models/read_weights.h"

#include <fstream>

#include "core/error.h"
#include "model/hf_names.h"
#include "model/hf_tensors.h"
#include "model/parameters.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;

namespace {

namespace fs = std::filesystem;

model::ModelConfig small() {
  model::ModelConfig config;
  config.d_model = 8;
  config.n_heads = 2;
  config.n_layers = 1;
  config.vocab_size = 10;
  config.embedding_size = 12;
  config.layer_norm_with_affine = false;
  config.max_sequence_length = 4;
  return config;
}

NamedTensors some_weights() {
  NamedTensors weights = model::make_tensors(model::parameter_specs(small()));
  float next = 0;
  for (auto& [name, tensor] : weights) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_ptr<float>()[i] = next++;
  }
  return weights;
}

void check_equal(const NamedTensors& found, const NamedTensors& expected) {
  const NamedTensors copied = model::make_tensors(model::parameter_specs(small()));
  model::copy_tensors(found, copied);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(copied[i].tensor.equal(expected[i].tensor));
}

}  // namespace

TEST_CASE(
    "weights are read under OLMo's and under Hugging Face's names, from a file and from a folder",
    "[models]") {
  const test::TemporaryDirectory folder;
  const NamedTensors weights = some_weights();
  store::write_safetensors(folder / "olmo.safetensors", weights);
  NamedTensors hf = model::to_hf_names(small(), weights);
  for (auto& [name, tensor] : hf) tensor = tensor.contiguous();
  store::write_safetensors(folder / "model.safetensors", hf);
  check_equal(models::read_weights(folder / "olmo.safetensors", small()), weights);
  check_equal(models::read_weights(folder / "model.safetensors", small()), weights);
  check_equal(models::read_weights(folder.path(), small()), weights);
}

TEST_CASE(
    "weights that are cut while they are read are an error, so that nothing is left half made",
    "[models]") {
  const test::TemporaryDirectory folder;
  auto config = small();
  config.vocab_size = 4096;
  config.embedding_size = 4096;
  const fs::path path = folder / "model.safetensors";
  store::write_safetensors(path, model::make_tensors(model::parameter_specs(config)));
  const store::SafetensorsFile open(path);
  fs::resize_file(path, 4096);
  try {
    (void)open.tensor(open.entries().back().name);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK_THAT(error.what(), Catch::Matchers::Contains(path.string()));
  }
}

TEST_CASE("slices of weights are those of the whole tensors", "[models]") {
  const test::TemporaryDirectory folder;
  const NamedTensors weights = some_weights();
  store::write_safetensors(folder / "olmo.safetensors", weights);
  NamedTensors hf = model::to_hf_names(small(), weights);
  for (auto& [name, tensor] : hf) tensor = tensor.contiguous();
  store::write_safetensors(folder / "hf.safetensors", hf);
  for (const std::int64_t rank : {0, 1, 2}) {
    std::vector<models::WeightSlice> slices;
    for (const auto& [name, tensor] : weights) {
      const auto count = tensor.numel();
      slices.push_back({rank * count / 3, (rank + 1) * count / 3 - rank * count / 3});
    }
    slices.back().size = 0;  // a rank has nothing of some
    for (const char* file : {"olmo.safetensors", "hf.safetensors"}) {
      const auto found = models::read_foreign_slices(folder / file, small(), slices);
      REQUIRE(found.size() == weights.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].name == weights[i].name);
        const auto& [begin, size] = slices[i];
        CHECK(found[i].tensor.equal(weights[i].tensor.reshape({-1}).narrow(0, begin, size)));
      }
    }
  }
}

TEST_CASE("what rotary embeddings are computed from is passed over", "[models]") {
  const test::TemporaryDirectory folder;
  auto weights = model::make_tensors(model::parameter_specs(small()));
  const std::size_t parameters = weights.size();
  weights.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", new_tensor({2}, at::kFloat)});
  store::write_safetensors(folder / "x.safetensors", weights);
  CHECK(models::read_weights(folder / "x.safetensors", small()).size() == parameters);
}

TEST_CASE("weights that are not there are named", "[models]") {
  CHECK_THROWS_WITH(models::read_weights("/no/such/weights", small()),
                    Catch::Contains("/no/such/weights"));
}
