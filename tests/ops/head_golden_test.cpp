// The head against OLMo's own values: set OLMO_GOLDEN_DIR to the directory of golden values and run
// "[.golden]".
#include <cstdlib>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "core/files/input_file.h"
#include "ops/cross_entropy.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

/// One tensor of a .safetensors file: an 8-byte length, a JSON header, the data. bf16 is widened to
/// fp32.
at::Tensor read_tensor(const std::filesystem::path& path, const std::string& name) {
  const std::string bytes = read_file(path);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  const auto entry = nlohmann::json::parse(bytes.substr(8, header_size)).at(name);
  const auto sizes = entry.at("shape").get<std::vector<std::int64_t>>();
  const auto type = entry.at("dtype").get<std::string>();
  at::Tensor t = at::empty(sizes, type == "I64"    ? at::kLong
                                  : type == "BF16" ? at::kBFloat16
                                                   : at::kFloat);
  std::memcpy(t.data_ptr(),
              bytes.data() + 8 + header_size + entry.at("data_offsets")[0].get<std::size_t>(),
              t.nbytes());
  return type == "BF16" ? t.to(at::kFloat) : t;
}

void check_model(const std::filesystem::path& directory, const std::string& head,
                 double tolerance) {
  INFO(directory.string());
  const auto forward = directory / "forward.safetensors";
  const at::Tensor ids = read_tensor(forward, "input_ids");
  const at::Tensor hidden = read_tensor(forward, "hidden.ln_f");
  const auto batch = ids.size(0), length = ids.size(1), count = batch * length;
  at::Tensor labels = at::full({batch, length}, kIgnoredLabel, at::kLong);
  labels.narrow(1, 0, length - 1).copy_(ids.narrow(1, 1, length - 1));
  at::Tensor ce = at::empty({count}), lse = at::empty({count});
  HeadWorkspace workspace;
  const HeadInput input{hidden.reshape({count, -1}).contiguous(),
                        read_tensor(directory / "weights.olmo.safetensors", head),
                        labels.view({count})};
  const auto loss =
      head_loss(resolve_policy("portable", "auto", 1), workspace, input, {ce, lse, {}});
  const auto shifted = [&](const at::Tensor& t) {
    return t.view({batch, length}).narrow(1, 0, length - 1);
  };
  const at::Tensor expected = read_tensor(forward, "ce_per_token");
  CHECK((shifted(ce) - expected).abs().max().item<double>() < tolerance);
  CHECK((shifted(lse.square()) * 1e-4 - read_tensor(forward, "z_per_token"))
            .abs()
            .max()
            .item<double>() < 1e-3 * tolerance);
  const auto losses = nlohmann::json::parse(read_file(directory / "meta.json")).at("losses");
  const auto labelled = static_cast<double>(loss.labels);
  CHECK(loss.ce_sum / labelled ==
        Approx(losses.at("ce_mean_over_B*(T-1)").get<double>()).epsilon(1e-6));
  CHECK(loss.z_sum * 1e-4 / labelled ==
        Approx(losses.at("z_mean_over_B*(T-1)").get<double>()).epsilon(1e-6));
}

}  // namespace

TEST_CASE("cross-entropy and z-loss of OLMo's hidden states match OLMo's", "[.golden]") {
  const char* variable = std::getenv("OLMO_GOLDEN_DIR");
  if (variable == nullptr) return;
  const auto models = std::filesystem::path(variable) / "model";
  check_model(models / "tied_noclip", "transformer.wte.weight", 3e-6);
  check_model(models / "untied_clip8", "transformer.ff_out.weight", 3e-6);
  check_model(models / "vocab50304_tied", "transformer.wte.weight", 3e-6);
}
