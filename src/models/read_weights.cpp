#include "models/read_weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/text/safe_text.h"
#include "model/hf_names.h"
#include "model/parameters.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint/raw_file.h"
#include "store/foreign/find_weights.h"
#include "store/foreign/safetensors.h"
#include "store/foreign/weight_files.h"

namespace olmo::models {
namespace {

namespace fs = std::filesystem;
using store::StoredTensor;

constexpr std::size_t kBlock = std::size_t{1}
                               << 18;  // values that are widened and hashed at a time

/// One of the model's tensors and what its values lie in, one part behind the other.
struct Assembly {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<StoredTensor::Part> parts;
  at::ScalarType dtype = at::kFloat;

  void append(const StoredTensor& tensor) {
    parts.insert(parts.end(), tensor.parts.begin(), tensor.parts.end());
  }

  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& part : parts) sum += part.entry->bytes;
    return sum;
  }
};

/// What rotary embeddings are computed from, which older versions of transformers saved, too.
constexpr std::string_view kOldBuffer = ".rotary_emb.inv_freq";

/// The tensors of all files, by name; what has been taken is gone.
class Sources {
 public:
  Sources(const std::filesystem::path& path, const std::vector<StoredTensor>& tensors)
      : where_(path.string()) {
    std::vector<std::string> names;
    for (const auto& tensor : tensors) names.push_back(store::decode_olmo_key(tensor.name));
    names = model::plain_names(std::move(names));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = model::hf_name_of_olmo_core(names[i]);
      if (name.ends_with(kOldBuffer)) continue;
      hf_names_ = hf_names_ || model::is_hf_name(name);
      if (!by_name_.emplace(name, &tensors[i]).second) fail(name, "is there twice");
    }
  }

  [[nodiscard]] bool has_hf_names() const { return hf_names_; }

  const StoredTensor& take(const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) fail(name, "is missing");
    const StoredTensor& tensor = *found->second;
    by_name_.erase(found);
    if (tensor.shape != shape) {
      fail(name,
           "has shape " + shape_text(tensor.shape) + ", the config asks for " + shape_text(shape));
    }
    const auto& dtype = tensor.dtype;
    if (dtype != "F32" && dtype != "BF16" && dtype != "F16" && dtype != "F64")
      fail(name, "is " + dtype + ", expected F32, BF16, F16 or F64");
    return tensor;
  }
  [[nodiscard]] bool contains(const std::string& name) const { return by_name_.contains(name); }
  void expect_none_left() const {
    if (!by_name_.empty()) fail(by_name_.begin()->first, "is not a parameter of this model");
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error(ErrorKind::kInput, where_ + ": tensor `" + safe_line(name) + "` " + what);
  }

 private:
  std::string where_;
  std::map<std::string, const StoredTensor*> by_name_;
  bool hf_names_ = false;
};

/// Finds each parameter of `config` among the sources.
std::vector<Assembly> plan(Sources& sources, const model::ModelConfig& config, bool keep_bf16) {
  const auto map =
      sources.has_hf_names() ? model::hf_name_map(config) : model::own_name_map(config);
  std::vector<Assembly> assemblies;
  for (const auto& spec : model::parameter_specs(config)) {
    Assembly assembly{.name = spec.name, .shape = spec.shape, .parts = {}};
    const auto& mapping = map[assemblies.size()];
    OLMO_CHECK(mapping.olmo == spec.name);
    auto shape = spec.shape;
    for (const auto& part : mapping.parts) {
      shape.front() = part.rows;
      assembly.append(sources.take(part.name, shape));
    }
    const bool all_bf16 = std::ranges::all_of(
        assembly.parts, [](const auto& part) { return part.entry->dtype == "BF16"; });
    if (keep_bf16 && all_bf16 && spec.shape.size() == 2) assembly.dtype = at::kBFloat16;
    assemblies.push_back(std::move(assembly));
  }
  return assemblies;
}

std::size_t width_of(const std::string& dtype) {
  return dtype == "F64" ? 8 : dtype == "F32" ? 4 : 2;
}

/// `count` values at `from`, which may lie at any address, as fp32.
void widen(const std::string& dtype, const std::byte* from, std::size_t count, float* out) {
  const auto each = [&](auto value, const auto& convert) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      out[i] = convert(value);
    }
  };
  if (dtype == "F32") {
    std::memcpy(out, from, count * sizeof(float));
  } else if (dtype == "BF16") {
    each(std::uint16_t{}, [](std::uint16_t bits) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
    });
  } else if (dtype == "F16") {
    each(at::Half{}, [](at::Half value) { return static_cast<float>(value); });
  } else {
    each(double{}, [](double value) { return static_cast<float>(value); });
  }
}

/// Copies a slice of the rows of all parts into `out`, if it is defined, and returns the digest of
/// its values, if it is to be `hashed`.
Digest read(const Assembly& assembly, const WeightSlice& slice, const at::Tensor& out,
            bool hashed) {
  Sha256 hash;
  std::vector<float> block(kBlock);
  std::vector<std::byte> stored;  // a copy: a file that is cut meanwhile is an error, no signal
  auto* to = out.defined() ? mutable_host_bytes(out).data() : nullptr;
  std::int64_t part_begin = 0;
  for (const auto& [file, entry] : assembly.parts) {
    const auto width = width_of(entry->dtype);
    const auto values = static_cast<std::int64_t>(entry->values());
    const auto begin = std::clamp<std::int64_t>(slice.begin - part_begin, 0, values);
    const auto end = std::clamp<std::int64_t>(slice.begin + slice.size - part_begin, 0, values);
    part_begin += values;
    if (begin == end) continue;
    const bool is_whole = begin == 0 && end == values;
    store::TensorCheck check(*file, *entry);
    const auto count = static_cast<std::size_t>(end - begin);
    const auto bytes =
        file->bytes(*entry).subspan(static_cast<std::size_t>(begin) * width, count * width);
    file->map().prefetch(bytes);
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t size = std::min(kBlock, count - first);
      stored.resize(size * width);
      copy_mapped(file->map(), entry->offset + (static_cast<std::size_t>(begin) + first) * width,
                  stored);
      if (is_whole) check.update(stored);
      const std::byte* from = stored.data();
      widen(entry->dtype, from, size, block.data());
      if (hashed) hash.update(block.data(), size * sizeof(float));
      if (to == nullptr) continue;
      const bool narrow = assembly.dtype == at::kBFloat16;
      std::memcpy(to, narrow ? static_cast<const void*>(from) : block.data(),
                  size * (narrow ? 2 : sizeof(float)));
      to += size * (narrow ? 2 : sizeof(float));
    }
    file->map().drop(bytes);
    file->map().check_not_cut();
    if (is_whole) check.finish();
  }
  return hash.finish();
}

/// A tied model's head, where a file has it nevertheless.
constexpr char kTiedHead[] = "lm_head.weight";

/// The tensors of a model, and the digest of each if they were to be hashed.
struct Read {
  NamedTensors tensors;
  std::vector<TensorDigest> digests;
};

struct HowToRead {
  std::span<const WeightSlice> slices = {};  ///< of each tensor; empty: all of each
  bool keep_bf16 = false;
  bool hashed = false;
};

Read read_all(const fs::path& path, const model::ModelConfig& config, const HowToRead& how) {
  const auto& slices = how.slices;
  const store::StoredTensors stored = store::open_weights(path);
  Sources sources(path, stored.tensors());
  std::vector<Assembly> assemblies = plan(sources, config, how.keep_bf16);
  const std::size_t parameters = assemblies.size();
  OLMO_CHECK(slices.empty() || slices.size() == parameters);
  if (config.weight_tying && sources.contains(kTiedHead)) {
    const auto& shape = assemblies.front().shape;
    assemblies.push_back(
        {.name = kTiedHead, .shape = shape, .parts = sources.take(kTiedHead, shape).parts});
  }
  sources.expect_none_left();
  const bool has_tied_head = assemblies.size() > parameters;  // it is to equal parameter 0

  const auto order =
      largest_first(assemblies.size(), [&](std::size_t i) { return assemblies[i].bytes(); });
  std::vector<at::Tensor> tensors(assemblies.size());
  std::vector<Digest> digests(assemblies.size());
  for_each_in_parallel(order.size(), [&](std::size_t next) {
    const std::size_t i = order[next];
    const Assembly& assembly = assemblies[i];
    WeightSlice slice{0, INT64_MAX};
    if (!slices.empty()) slice = slices[i < parameters ? i : 0];
    if (i < parameters) {
      const auto shape = slices.empty() ? assembly.shape : std::vector{slice.size};
      tensors[i] = new_tensor(shape, assembly.dtype);
    }
    const bool compared = has_tied_head && (i == 0 || i == parameters);
    digests[i] = read(assembly, slice, tensors[i], how.hashed || compared);
  });
  if (has_tied_head && digests.back() != digests.front()) {
    sources.fail(kTiedHead,
                 "differs from the embedding, but the config says that they are one "
                 "(tie_word_embeddings)");
  }
  Read result;
  for (std::size_t i = 0; i < parameters; ++i) {
    result.tensors.push_back({assemblies[i].name, tensors[i]});
    if (how.hashed) result.digests.push_back({assemblies[i].name, assemblies[i].shape, digests[i]});
  }
  return result;
}

}  // namespace

void require_weights(const fs::path& path) {
  if (!fs::exists(path))
    throw Error(ErrorKind::kInput, path.string() + ": there are no such weights");
}

NamedTensors read_weights(const fs::path& path, const model::ModelConfig& config) {
  require_weights(path);
  if (!store::holds_weights(path))
    return store::read_checkpoint(store::resolve_checkpoint(path), /*weights_only=*/true).model;
  return read_all(path, config, {}).tensors;
}

Digest weights_digest(std::vector<TensorDigest> tensors) {
  std::ranges::sort(tensors, {}, &TensorDigest::name);
  Sha256 hash;
  const std::string_view zero("\0", 1);
  for (const auto& tensor : tensors) {
    hash.update(tensor.name).update(zero);
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      hash.update((i == 0 ? "" : ",") + std::to_string(tensor.shape[i]));
    hash.update(zero).update(tensor.values.bytes.data(), tensor.values.bytes.size());
  }
  return hash.finish();
}

Digest weights_digest(const NamedTensors& tensors) {
  std::vector<TensorDigest> digests(tensors.size());
  for_each_in_parallel(tensors.size(), [&](std::size_t i) {
    const auto& [name, tensor] = tensors[i];
    digests[i] = {name, tensor.sizes().vec(), sha256(std::as_bytes(host_span<float>(tensor)))};
  });
  return weights_digest(std::move(digests));
}

ModelWeights read_foreign_weights(const fs::path& path, const model::ModelConfig& config,
                                  bool keep_bf16) {
  Read whole = read_all(path, config, {.keep_bf16 = keep_bf16, .hashed = true});
  return {std::move(whole.tensors), weights_digest(std::move(whole.digests))};
}

NamedTensors read_foreign_slices(const fs::path& path, const model::ModelConfig& config,
                                 std::span<const WeightSlice> slices) {
  return read_all(path, config, {.slices = slices}).tensors;
}

}  // namespace olmo::models
