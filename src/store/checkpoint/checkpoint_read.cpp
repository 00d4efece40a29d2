#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/compute/tensor.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/checkpoint/raw_file.h"

namespace olmo::store {
namespace {

constexpr std::uint64_t kMaxDocument = 64 << 20;

[[noreturn]] void damaged(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorKind::kDamaged, file.string() + ": " + what);
}

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float32") return at::kFloat;
  if (dtype == "float64") return at::kDouble;
  OLMO_CHECK(dtype == "int64");  // the manifest was checked
  return at::kLong;
}

std::string digest_mismatch(const CheckpointDataset& dataset) {
  return dataset.path + " is damaged: its bytes do not have the SHA-256 with which it was saved";
}

std::vector<std::size_t> by_size(const std::vector<const CheckpointDataset*>& datasets) {
  return largest_first(datasets.size(), [&](std::size_t i) { return datasets[i]->bytes; });
}

/// The tensors under `prefix`, "/model/" or "/optim/", in the order they were saved.
std::vector<const CheckpointDataset*> tensors_below(const std::vector<CheckpointDataset>& datasets,
                                                    const std::string& prefix) {
  std::vector<const CheckpointDataset*> tensors;
  for (const auto& dataset : datasets)
    if (dataset.path.starts_with(prefix) && dataset.dtype != "json") tensors.push_back(&dataset);
  return tensors;
}

}  // namespace

CheckpointReader::CheckpointReader(const std::filesystem::path& directory)
    : directory_(directory), file_(directory / kDataFileName) {
  const auto manifest_file = directory / kManifestName;
  const std::string text = read_file(manifest_file);
  Manifest manifest = parse_manifest(text, manifest_file.string());
  std::error_code error;
  if (!std::filesystem::is_regular_file(file_, error))
    damaged(file_, "is missing, or is no file: the checkpoint is not whole");
  if (structure_digest(file_, manifest.file_bytes, manifest.datasets) != manifest.structure) {
    damaged(file_,
            "its structure is damaged: the bytes between the datasets do not have the SHA-256 of "
            "the manifest");
  }
  kind_ = manifest.summary->at("kind") == "full" ? CheckpointKind::kFull : CheckpointKind::kWeights;
  step_ = manifest.summary->at("step").get<std::int64_t>();
  summary_ = std::move(manifest.summary);
  datasets_ = std::move(manifest.datasets);
  manifest_digest_ = sha256(text);
  tensors_digest_ = store::tensors_digest(datasets_);
  bytes_ = manifest.file_bytes + text.size();
}

const CheckpointDataset* CheckpointReader::find(const std::string& dataset_path) const {
  const auto found =
      std::find_if(datasets_.begin(), datasets_.end(),
                   [&](const CheckpointDataset& dataset) { return dataset.path == dataset_path; });
  return found == datasets_.end() ? nullptr : &*found;
}

Json CheckpointReader::read_json(const std::string& dataset_path) const {
  const CheckpointDataset* dataset = find(dataset_path);
  if (dataset == nullptr || dataset->dtype != "json")
    damaged(file_, "holds no document " + dataset_path);
  if (dataset->bytes > kMaxDocument) damaged(file_, dataset_path + " is unreasonably large");
  std::string text(dataset->bytes, '\0');
  require_digest(*dataset, RawReader(file_).read_and_hash(dataset->offset,
                                                          std::as_writable_bytes(std::span(text))));
  Json json = parse_untrusted(text, file_.string() + ": " + dataset_path);
  if (!json.is_object()) damaged(file_, dataset_path + " is not a JSON object");
  return json;
}

Json CheckpointReader::config() const { return read_json("/config"); }
Json CheckpointReader::trainer() const { return read_json("/trainer/state"); }
Json CheckpointReader::optim_state() const { return read_json("/optim/state"); }

NamedTensors CheckpointReader::read(const std::string& group) const {
  const std::string prefix = "/" + group + "/";
  NamedTensors tensors;
  for (const auto* dataset : tensors_below(datasets_, prefix)) {
    tensors.push_back({dataset->path.substr(prefix.size()),
                       new_tensor(dataset->shape, scalar_type(dataset->dtype))});
  }
  read_into(group, tensors);
  return tensors;
}

void CheckpointReader::read_into(const std::string& group, const NamedTensors& into) const {
  const std::string prefix = "/" + group + "/";
  std::unordered_map<std::string_view, const CheckpointDataset*> by_name;
  for (const auto* dataset : tensors_below(datasets_, prefix))
    by_name.emplace(std::string_view(dataset->path).substr(prefix.size()), dataset);
  std::vector<const CheckpointDataset*> sources;
  for (const auto& [name, tensor] : into) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) damaged(file_, "has no tensor " + prefix + name);
    const CheckpointDataset& dataset = *found->second;
    OLMO_CHECK(tensor.is_contiguous() && tensor.device().is_cpu());
    if (tensor.sizes() != at::IntArrayRef(dataset.shape) ||
        tensor.scalar_type() != scalar_type(dataset.dtype)) {
      damaged(file_, dataset.path + " is " + dataset.dtype + " " + shape_text(dataset.shape) +
                         ", expected " + std::string(c10::toString(tensor.scalar_type())) + " " +
                         shape_text(tensor.sizes()));
    }
    sources.push_back(&dataset);
    by_name.erase(found);
  }
  if (!by_name.empty())
    damaged(file_, "has a tensor that was not expected: " + by_name.begin()->second->path);

  const RawReader reader(file_);
  const auto order = by_size(sources);
  for_each_in_parallel(order.size(), [&](std::size_t i) {
    const CheckpointDataset& dataset = *sources[order[i]];
    const auto out = mutable_host_bytes(into[order[i]].tensor);
    require_digest(dataset, reader.read_and_hash(dataset.offset, out));
  });
}

at::Tensor CheckpointReader::read_tensor(const CheckpointDataset& dataset) const {
  at::Tensor tensor = new_tensor(dataset.shape, scalar_type(dataset.dtype));
  require_digest(dataset,
                 RawReader(file_).read_and_hash(dataset.offset, mutable_host_bytes(tensor)));
  return tensor;
}

void CheckpointReader::require_digest(const CheckpointDataset& dataset,
                                      const Digest& digest) const {
  if (digest != dataset.sha256) damaged(file_, digest_mismatch(dataset));
}

std::vector<std::string> CheckpointReader::verify() const {
  std::vector<const CheckpointDataset*> all;
  for (const auto& dataset : datasets_) all.push_back(&dataset);
  std::vector<std::uint8_t> wrong(all.size(), 0);  // not vector<bool>: threads write neighbours
  const RawReader reader(file_);
  const auto order = by_size(all);
  for_each_in_parallel(order.size(), [&](std::size_t i) {
    const CheckpointDataset& dataset = *all[order[i]];
    Sha256 hash;
    reader.hash(dataset.offset, dataset.bytes, hash);
    wrong[order[i]] = hash.finish() == dataset.sha256 ? 0 : 1;
  });
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (wrong[i] != 0) sentences.push_back(digest_mismatch(*all[i]));
  }
  return sentences;
}

CheckpointContents read_checkpoint(const std::filesystem::path& directory, bool weights_only) {
  const CheckpointReader reader(directory);
  CheckpointContents contents;
  contents.kind = weights_only ? CheckpointKind::kWeights : reader.kind();
  contents.config = reader.config();
  contents.trainer = reader.trainer();
  contents.model = reader.read("model");
  if (contents.kind == CheckpointKind::kFull) {
    contents.optim = reader.read("optim");
    contents.optim_state = reader.optim_state();
  }
  return contents;
}

}  // namespace olmo::store
