#include "models/olmo_optimizer.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "models/model_files.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using Catch::Matchers::Contains;
using models::read_olmo_optimizer;
namespace fs = std::filesystem;

namespace {

constexpr char kFile[] = "optim.safetensors";
const fs::path kGolden = OLMO_TEST_DATA "/train/olmo_checkpoint";

/// The golden file with its tensors changed, in a folder.
template <class Edit>
void write_state(const fs::path& folder, const Edit& edit) {
  const store::SafetensorsFile golden(kGolden / kFile);
  NamedTensors tensors;
  for (const auto& entry : golden.entries())
    tensors.push_back({entry.name, golden.tensor(entry.name)});
  edit(tensors);
  store::write_safetensors(folder / kFile, tensors);
}

/// The tensor of one part of one parameter.
NamedTensor& tensor_of(NamedTensors& tensors, const std::string& part, const std::string& name) {
  return *std::ranges::find_if(tensors, [&](const auto& tensor) {
    const auto names = store::decode_olmo_path(tensor.name);
    return names == std::vector<std::string>{"state", name, part};
  });
}

/// What LionW does not save is left out.
void without_adamw(NamedTensors& tensors) {
  std::erase_if(tensors, [](const auto& tensor) {
    const auto names = store::decode_olmo_path(tensor.name);
    return names.size() == 3 && (names[2] == "exp_avg_sq" || names[2] == "step");
  });
}

std::vector<std::string> parts_of(const models::OlmoOptimizer& state, const std::string& name) {
  std::vector<std::string> parts;
  for (const auto& [tensor, values] : state.tensors)
    if (tensor.ends_with("/" + name)) parts.push_back(tensor.substr(0, tensor.find('/')));
  return parts;
}

}  // namespace

TEST_CASE("the optimizer's state that OLMo saved is read under our names", "[models]") {
  const auto config = models::find_model(kGolden).config;
  const auto state = read_olmo_optimizer(kGolden, config);
  REQUIRE(state);
  CHECK(state->step == 8);
  CHECK(state->name == "adamw");
  CHECK(parts_of(*state, "transformer.ln_f.weight") ==
        std::vector<std::string>{"step", "exp_avg", "exp_avg_sq", "grad_norm_exp_avg"});
  CHECK_FALSE(read_olmo_optimizer(kGolden.parent_path(), config));
}

TEST_CASE("a state that torch saved, or that goes by numbers, is the same", "[models]") {
  const auto config = models::find_model(kGolden).config;
  const auto expected = read_olmo_optimizer(kGolden, config)->tensors;
  const auto check_same = [&](const std::string& file) {
    INFO(file);
    const test::TemporaryDirectory folder;
    fs::copy(kGolden / file, folder.path());
    const auto state = read_olmo_optimizer(folder.path(), config);
    REQUIRE(state);
    REQUIRE(state->tensors.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(state->tensors[i].name == expected[i].name);
      CHECK(at::equal(state->tensors[i].tensor, expected[i].tensor));
    }
  };
  for (const char* file : {"pickled/optim.pt", "by_number/optim.pt", "by_number/optim.safetensors"})
    check_same(file);
}

TEST_CASE("the state of LionW has one moment, and does not tell how many updates were made",
          "[models]") {
  const auto config = models::find_model(kGolden).config;
  const test::TemporaryDirectory folder;
  const std::string name = "transformer.ln_f.weight";
  write_state(folder.path(), without_adamw);
  auto state = read_olmo_optimizer(folder.path(), config);
  REQUIRE(state);
  CHECK(state->name == "lionw");
  CHECK_FALSE(state->step);
  CHECK(parts_of(*state, name) == std::vector<std::string>{"exp_avg", "grad_norm_exp_avg"});
  state->set_step(7);
  CHECK(parts_of(*state, name) == std::vector<std::string>{"step", "exp_avg", "grad_norm_exp_avg"});
  const auto step = std::ranges::find(state->tensors, "step/" + name, &NamedTensor::name);
  CHECK(host_value<std::int64_t>(step->tensor) == 7);

  write_state(folder.path(), [&](auto& tensors) {
    without_adamw(tensors);
    tensor_of(tensors, "exp_avg", name).name = "exp_avg";
  });
  CHECK_THROWS_WITH(read_olmo_optimizer(folder.path(), config),
                    Contains("`exp_avg` of transformer.ln_f.weight is missing: expected the state "
                             "of LionW"));
}

TEST_CASE("a state that does not fit its model is told by parameter and part", "[models]") {
  const auto config = models::find_model(kGolden).config;
  const test::TemporaryDirectory folder;
  const std::string name = "transformer.ln_f.weight";
  const auto check = [&](const auto& edit, const std::string& sentence) {
    write_state(folder.path(), edit);
    CHECK_THROWS_WITH(read_olmo_optimizer(folder.path(), config), Contains(sentence));
  };
  check([&](auto& tensors) { tensor_of(tensors, "exp_avg", name).name = "exp_avg"; },
        "optim.safetensors: `exp_avg` of transformer.ln_f.weight is missing: expected the state of "
        "AdamW, by the parameters' names");
  check([&](auto& tensors) { tensor_of(tensors, "exp_avg_sq", name).tensor = at::zeros({8}); },
        "`exp_avg_sq` of transformer.ln_f.weight has another shape");
  check(
      [&](auto& tensors) {
        auto& tensor = tensor_of(tensors, "exp_avg", name).tensor;
        tensor = tensor.to(at::kBFloat16);
      },
      "`exp_avg` of transformer.ln_f.weight is not F32");
  check([&](auto& tensors) { tensor_of(tensors, "step", name).tensor = at::full({}, 5.0F); },
        "`step` of transformer.ln_f.weight is 5, and of the first parameter 8");
  for (const float wrong : {-1.0F, 8.5F, 3e7F, std::numeric_limits<float>::quiet_NaN()})
    check([&](auto& tensors) { tensor_of(tensors, "step", name).tensor = at::full({}, wrong); },
          "`step` of transformer.ln_f.weight is no number of updates");
}
