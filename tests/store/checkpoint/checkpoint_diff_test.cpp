#include "store/checkpoint/checkpoint_diff.h"

#include <fstream>
#include <limits>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "store/checkpoint_fixture.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"

namespace olmo::store::test {
namespace {

using Verdict = TensorDifference::Verdict;

at::Tensor floats(std::initializer_list<float> values) {
  return at::tensor(std::vector<float>(values), at::kFloat);
}

TensorSource source(const NamedTensors& tensors) {
  TensorSource result;
  for (const auto& [name, tensor] : tensors) {
    result.entries.push_back({name, tensor.scalar_type() == at::kFloat ? "float32" : "float64",
                              tensor.sizes().vec(), [copy = tensor] { return copy; }});
  }
  return result;
}

}  // namespace

TEST_CASE("equal bits are equal, NaNs too", "[store]") {
  const auto difference = compare_tensors("x", awkward_floats(), awkward_floats());
  CHECK(difference.verdict == Verdict::kEqual);
  CHECK(difference.unequal == 0);
}

TEST_CASE("a difference tells where, how much and how many representable numbers", "[store]") {
  const float next = std::nextafter(2.0F, 3.0F);
  const auto difference = compare_tensors("x", floats({1, 2, 3, 4}), floats({1, next, 3, 4.5F}));
  CHECK(difference.verdict == Verdict::kDifferent);
  CHECK(difference.elements == 4);
  CHECK(difference.unequal == 2);
  CHECK(difference.first_index == 1);
  CHECK(difference.first_a == 2.0);
  CHECK(difference.first_b == static_cast<double>(next));
  CHECK(difference.max_abs == 0.5);
  CHECK(difference.max_ulp == (1U << 20U));
}

TEST_CASE(
    "zeros of both signs differ in bits and are no distance apart; neighbours across zero are two",
    "[store]") {
  const auto zeros = compare_tensors("x", floats({0.0F}), floats({-0.0F}));
  CHECK(zeros.verdict == Verdict::kDifferent);
  CHECK(zeros.max_ulp == 0);
  CHECK(zeros.max_abs == 0.0);
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(compare_tensors("x", floats({tiny}), floats({-tiny})).max_ulp == 2);
}

TEST_CASE("a NaN against a number is counted by itself", "[store]") {
  const auto difference = compare_tensors("x", floats({NAN, 1}), floats({5, 2}));
  CHECK(difference.unequal == 2);
  CHECK(difference.unequal_nans == 1);
  CHECK(difference.max_abs == 1.0);
}

TEST_CASE("integers are compared by their value", "[store]") {
  const auto difference =
      compare_tensors("x", at::arange(4, at::kLong), at::arange(1, 5, at::kLong));
  CHECK(difference.unequal == 4);
  CHECK(difference.max_abs == 1.0);
}

TEST_CASE("names, shapes and dtypes that differ are named", "[store]") {
  const auto a = source(
      {{"same", floats({1})}, {"shape", floats({1})}, {"type", floats({1})}, {"a", floats({1})}});
  const auto b = source({{"b", floats({1})},
                         {"type", floats({1}).to(at::kDouble)},
                         {"shape", floats({1, 2})},
                         {"same", floats({1})}});
  const auto differences = diff_sources(a, b);
  REQUIRE(differences.size() == 5);
  CHECK(differences[0].verdict == Verdict::kEqual);
  CHECK(differences[1].verdict == Verdict::kOtherShape);
  CHECK(differences[2].verdict == Verdict::kOtherDtype);
  CHECK(differences[3].verdict == Verdict::kOnlyInA);
  CHECK(differences[4].verdict == Verdict::kOnlyInB);
  CHECK(differences[4].name == "b");
}

TEST_CASE("two checkpoints are compared tensor by tensor, with or without the optimizer",
          "[store]") {
  const TempFolder folder;
  auto changed = example(2);
  static_cast<std::uint32_t*>(changed.optim[0].tensor.mutable_data_ptr())[0] ^= 1;
  const auto a = save_checkpoint(folder.path() / "a", example(1)).path;
  const auto b = save_checkpoint(folder.path() / "b", changed).path;
  const auto unequal = [](const std::vector<TensorDifference>& differences) {
    std::vector<std::string> names;
    for (const auto& difference : differences) {
      if (difference.verdict != Verdict::kEqual) names.push_back(difference.name);
    }
    return names;
  };
  CHECK(unequal(diff_sources(open_tensor_source(a, true), open_tensor_source(b, true))).empty());
  const auto names =
      unequal(diff_sources(open_tensor_source(a), open_tensor_source(folder.path() / "b")));
  REQUIRE(names.size() == 5);  // one moment and the four step counts
  CHECK(names[0] == "optim/exp_avg/transformer.wte.weight");
}

TEST_CASE("a checkpoint's weights have the bits of the safetensors file written from them",
          "[store]") {
  const TempFolder folder;
  const auto contents = example(1);
  const auto checkpoint = save_checkpoint(folder.path(), contents).path;
  const auto file = folder.path() / "weights.safetensors";
  write_safetensors(file, contents.model);
  const auto differences =
      diff_sources(open_tensor_source(checkpoint, true), open_tensor_source(file, true));
  REQUIRE(differences.size() == contents.model.size());
  for (const auto& difference : differences) CHECK(difference.verdict == Verdict::kEqual);
}

TEST_CASE("a folder of safetensors shards is compared as one", "[store]") {
  const TempFolder folder;
  const auto model = example(1).model;
  const auto whole = folder.path() / "whole.safetensors";
  write_safetensors(whole, model);
  write_safetensors(folder.path() / "model-1.safetensors", {model[0], model[1]});
  write_safetensors(folder.path() / "model-2.safetensors", {model[2], model[3]});
  Json map;
  for (std::size_t i = 0; i < model.size(); ++i)
    map[model[i].name] = i < 2 ? "model-1.safetensors" : "model-2.safetensors";
  std::ofstream(folder.path() / "model.safetensors.index.json") << Json{{"weight_map", map}};
  const auto differences =
      diff_sources(open_tensor_source(whole), open_tensor_source(folder.path()));
  REQUIRE(differences.size() == model.size());
  for (const auto& difference : differences) CHECK(difference.verdict == Verdict::kEqual);
}

}  // namespace olmo::store::test
