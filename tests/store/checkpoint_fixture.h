// A small training state whose numbers are awkward on purpose.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/compute/named_tensors.h"
#include "core/files/input_file.h"
#include "store/checkpoint/checkpoint.h"
#include "support/temporary_directory.h"

namespace olmo::store::test {

using TempFolder = olmo::test::TemporaryDirectory;

inline at::Tensor patterned(at::IntArrayRef shape, std::uint32_t seed) {
  at::Tensor tensor = new_tensor(shape, at::kFloat);
  auto* bits = static_cast<std::uint32_t*>(tensor.mutable_data_ptr());
  std::uint32_t state = seed * 2654435761U + 1U;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525U + 1013904223U;
    bits[i] = state;  // any bit pattern: NaN payloads, infinities, subnormals, both zeros
  }
  return tensor;
}

inline at::Tensor awkward_floats() {
  const std::uint32_t bits[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x7f800000,
                                0xff800000, 0x7fc00000, 0x7fa12345, 0xffc0beef, 0x3f800000};
  at::Tensor tensor = new_tensor({10}, at::kFloat);
  std::memcpy(tensor.mutable_data_ptr(), bits, sizeof bits);
  return tensor;
}

inline CheckpointContents example(std::int64_t step = 100, std::uint32_t seed = 1,
                                  std::int64_t rows = 300) {
  CheckpointContents contents;
  contents.trainer = Json{{"step", step},
                          {"epoch", 1},
                          {"tokens_seen", 18446744073709551615ULL},
                          {"run_id", "run-Ω"},
                          {"chain_hash", std::string(64, 'a')},
                          {"clip", 0.1},
                          {"data", {{"seed", 6198}, {"epoch", 1}, {"start_index", 3200}}}};
  contents.config = Json{{"run_name", "tést"}, {"model", {{"d_model", 8}}}, {"lr", 3e-4}};
  contents.optim_state = Json{{"name", "adamw"}, {"max_grad_norm", 1.0}};
  contents.model = {{"transformer.wte.weight", patterned({rows, 17}, seed)},
                    {"transformer.blocks.0.att_proj.weight", patterned({24, 8}, seed + 1)},
                    {"transformer.blocks.0.attn_norm.weight", awkward_floats()},
                    {"transformer.ff_out.weight", patterned({1, 1}, seed + 2)}};
  for (const auto& [name, tensor] : contents.model) {
    contents.optim.push_back({"exp_avg/" + name, patterned(tensor.sizes(), seed + 7)});
    contents.optim.push_back({"exp_avg_sq/" + name, patterned(tensor.sizes(), seed + 8)});
    contents.optim.push_back({"step/" + name, new_tensor({}, at::kLong).fill_(step)});
  }
  return contents;
}

inline bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const at::Tensor& x = a[i].tensor;
    const at::Tensor& y = b[i].tensor;
    if (a[i].name != b[i].name || x.sizes() != y.sizes() || x.scalar_type() != y.scalar_type())
      return false;
    if (x.nbytes() > 0 && std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) != 0)
      return false;
  }
  return true;
}

inline bool same(const CheckpointContents& a, const CheckpointContents& b) {
  return a.kind == b.kind && *a.trainer == *b.trainer && *a.config == *b.config &&
         *a.optim_state == *b.optim_state && same_bits(a.model, b.model) &&
         same_bits(a.optim, b.optim);
}

/// Where two checkpoints' data files differ, which may only be in when they were written: the text
/// of created_utc, and the checksum of the header that holds it.
inline std::string difference_of(const std::filesystem::path& a, const std::filesystem::path& b) {
  const std::string x = read_file(a / "checkpoint.h5"), y = read_file(b / "checkpoint.h5");
  if (x.size() != y.size()) return "sizes";
  std::size_t first = x.size(), last = 0, count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  constexpr std::size_t kHeader = 4096, kTimeAndChecksum = 27 + 4;
  const bool only_time = count == 0 || (count <= kTimeAndChecksum && last - first < kHeader);
  if (!only_time) return std::to_string(count) + " bytes from byte " + std::to_string(first);
  const CheckpointReader of_a(a), of_b(b);
  Json summary_a = of_a.summary(), summary_b = of_b.summary();
  for (auto* summary : {&summary_a, &summary_b}) summary->erase("created_utc");
  return summary_a == summary_b ? "" : "manifests";
}

}  // namespace olmo::store::test
