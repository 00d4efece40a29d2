#include "store/checkpoint/checkpoint_manifest.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "store/checkpoint/raw_file.h"

namespace olmo::store {
namespace {

constexpr int kMaxDepth = 32;  // writing and destroying JSON recurses
constexpr std::size_t kMaxRank = 8;

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kDamaged, where + ": " + what);
}

std::uint64_t item_size(const std::string& dtype) {
  if (dtype == "float32") return 4;
  if (dtype == "float64" || dtype == "int64") return 8;
  return 0;
}

/// shape x item size, or nothing if that is no size: a negative extent, an overflow.
std::optional<std::uint64_t> size_of(const std::vector<std::int64_t>& shape, std::uint64_t item) {
  std::uint64_t size = item;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0;
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / extent)) {
      return std::nullopt;
    }
    size *= static_cast<std::uint64_t>(extent);
  }
  return size;
}

/// A count as we write it; the library would convert -1 or 1e300 without a word.
std::uint64_t count_from(const Json& json) {
  if (!json.is_number_unsigned())
    throw std::invalid_argument("expected a whole number, got " + json.dump());
  return json.get<std::uint64_t>();
}

std::vector<std::int64_t> shape_from(const Json& json) {
  std::vector<std::int64_t> shape;
  for (const Json& extent : json) shape.push_back(static_cast<std::int64_t>(count_from(extent)));
  return shape;
}

Json to_json(const CheckpointDataset& dataset) {
  return {{"path", dataset.path},     {"dtype", dataset.dtype}, {"shape", dataset.shape},
          {"offset", dataset.offset}, {"bytes", dataset.bytes}, {"sha256", dataset.sha256.hex()}};
}

CheckpointDataset dataset_from(const Json& json, std::uint64_t file_bytes,
                               const std::string& where) {
  CheckpointDataset dataset;
  dataset.path = json.at("path").get<std::string>();
  dataset.dtype = json.at("dtype").get<std::string>();
  dataset.shape = shape_from(json.at("shape"));
  dataset.offset = count_from(json.at("offset"));
  dataset.bytes = count_from(json.at("bytes"));
  dataset.sha256 = Digest::from_hex(json.at("sha256").get<std::string>());
  const std::uint64_t item = item_size(dataset.dtype);
  if (item == 0 && dataset.dtype != "json") {
    damaged(where, dataset.path + " has the dtype '" + dataset.dtype +
                       "', which this program does not know");
  }
  if (item != 0 &&
      (dataset.shape.size() > kMaxRank || size_of(dataset.shape, item) != dataset.bytes)) {
    damaged(where, dataset.path + " states " + std::to_string(dataset.bytes) +
                       " bytes, which is not its shape times its dtype");
  }
  if (dataset.bytes > file_bytes || dataset.offset > file_bytes - dataset.bytes) {
    damaged(where,
            dataset.path + " would end beyond the file's " + std::to_string(file_bytes) + " bytes");
  }
  return dataset;
}

/// In the order of their bytes, empty ones left out.
std::vector<const CheckpointDataset*> by_offset(const std::vector<CheckpointDataset>& datasets) {
  std::vector<const CheckpointDataset*> sorted;
  for (const auto& dataset : datasets) {
    if (dataset.bytes > 0) sorted.push_back(&dataset);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->offset < b->offset; });
  return sorted;
}

void check_datasets(const std::vector<CheckpointDataset>& datasets, const std::string& where) {
  std::set<std::string> paths;
  for (const auto& dataset : datasets) {
    if (!paths.insert(dataset.path).second) damaged(where, dataset.path + " is listed twice");
  }
  const auto sorted = by_offset(datasets);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset) {
      damaged(where, sorted[i - 1]->path + " and " + sorted[i]->path + " overlap");
    }
  }
}

void check_identity(const Json& json, const std::string& where) {
  if (!json.is_object() || json.value("format", Json()) != kCheckpointFormat) {
    damaged(where, std::string("is not the manifest of an ") + kCheckpointFormat);
  }
  const Json version = json.value("format_version", Json());
  if (!version.is_number_unsigned() || version == 0U) damaged(where, "has no format version");
  if (version.get<std::uint64_t>() > static_cast<std::uint64_t>(kCheckpointVersion)) {
    damaged(where, "has format version " + version.dump() + ", this program reads up to " +
                       std::to_string(kCheckpointVersion) + "; use a newer olmo-harness");
  }
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  Json datasets = Json::array();
  for (const auto& dataset : manifest.datasets) datasets.push_back(to_json(dataset));
  Json json = *manifest.summary;
  json["tensors_sha256"] = tensors_digest(manifest.datasets).hex();
  json["files"] = Json::array({{{"name", kDataFileName},
                                {"bytes", manifest.file_bytes},
                                {"structure_sha256", manifest.structure.hex()},
                                {"datasets", std::move(datasets)}}});
  json["sha256"] = sha256(json.dump()).hex();
  return json.dump(1) + "\n";
}

Json parse_untrusted(const std::string& text, const std::string& where) {
  return parse_strict_json(text,
                           {.where = where, .kind = ErrorKind::kDamaged, .max_depth = kMaxDepth});
}

Manifest parse_manifest(const std::string& text, const std::string& where) {
  Json json = parse_untrusted(text, where);
  check_identity(json, where);
  try {
    const std::string stated = json.at("sha256").get<std::string>();
    json.erase("sha256");
    if (sha256(json.dump()).hex() != stated)
      damaged(where, "does not have the SHA-256 that it states");
    Manifest manifest;
    const Json files = json.at("files");
    if (files.size() != 1 || files.at(0).at("name") != kDataFileName) {
      damaged(where, std::string("must list exactly one file, ") + kDataFileName);
    }
    manifest.file_bytes = count_from(files.at(0).at("bytes"));
    manifest.structure = Digest::from_hex(files.at(0).at("structure_sha256").get<std::string>());
    for (const Json& dataset : files.at(0).at("datasets")) {
      manifest.datasets.push_back(dataset_from(dataset, manifest.file_bytes, where));
    }
    check_datasets(manifest.datasets, where);
    if (json.at("tensors_sha256") != tensors_digest(manifest.datasets).hex()) {
      damaged(where, "tensors_sha256 is not that of its tensors");
    }
    json.erase("files");
    const std::string kind = json.at("kind").get<std::string>();
    if (kind != "full" && kind != "weights") damaged(where, "has the unknown kind '" + kind + "'");
    count_from(json.at("step"));
    if (!json.at("created_utc").is_string() || !json.at("ephemeral").is_boolean()) {
      damaged(where, "must have created_utc, a text, and ephemeral, true or false");
    }
    manifest.summary = std::move(json);
    return manifest;
  } catch (const std::invalid_argument& error) {
    damaged(where, error.what());
  } catch (const Json::exception& error) {
    damaged(where,
            std::string("lacks a member or has one of the wrong type (") + error.what() + ")");
  }
}

std::vector<FileGap> structure_gaps(std::uint64_t file_bytes,
                                    const std::vector<CheckpointDataset>& datasets) {
  std::vector<FileGap> gaps;
  std::uint64_t at = 0;
  const auto add_gap = [&](std::uint64_t end) {
    if (end != at) gaps.push_back({at, end - at});
  };
  for (const auto* dataset : by_offset(datasets)) {
    add_gap(dataset->offset);
    at = dataset->offset + dataset->bytes;
  }
  add_gap(file_bytes);
  return gaps;
}

Digest structure_digest(const std::filesystem::path& file, std::uint64_t file_bytes,
                        const std::vector<CheckpointDataset>& datasets) {
  const RawReader reader(file);
  if (reader.size() != file_bytes) {
    damaged(file.string(), "has " + std::to_string(reader.size()) + " bytes, expected " +
                               std::to_string(file_bytes));
  }
  Sha256 hash;
  for (const auto& gap : structure_gaps(file_bytes, datasets)) {
    hash.update_u64(gap.offset).update_u64(gap.bytes);
    reader.hash(gap.offset, gap.bytes, hash);
  }
  return hash.finish();
}

Digest tensors_digest(const std::vector<CheckpointDataset>& datasets) {
  std::vector<const CheckpointDataset*> tensors;
  for (const auto& dataset : datasets) {
    if (dataset.dtype != "json") tensors.push_back(&dataset);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const auto* a, const auto* b) { return a->path < b->path; });
  Sha256 hash;
  for (const auto* tensor : tensors) hash.update(tensor->path + " " + tensor->sha256.hex() + "\n");
  return hash.finish();
}

}  // namespace olmo::store
