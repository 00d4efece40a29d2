#include "models/convert_model.h"

#include <fstream>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "models/read_weights.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_diff.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using models::export_model;
using models::ExportFormat;
using models::import_model;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = OLMO_TEST_DATA "/train/hf";

bool same_tensors(const fs::path& a, const fs::path& b) {
  for (const auto& difference :
       store::diff_sources(store::open_tensor_source(a), store::open_tensor_source(b))) {
    if (difference.verdict != store::TensorDifference::Verdict::kEqual) return false;
  }
  return true;
}

ErrorKind kind_of_export(const fs::path& from, const fs::path& to) {
  try {
    export_model(from, to, {});
  } catch (const Error& error) {
    INFO(error.what());
    return error.kind();
  }
  FAIL("was exported");
  return ErrorKind::kFailure;
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("what is imported and exported again has the same bits and config", "[models]") {
  for (const char* name : {"olmo1", "olmo2", "olmo3"}) {
    const test::TemporaryDirectory folder;
    const auto imported = import_model(kGoldens / name, folder / "ours");
    export_model(folder / "ours", folder / "hf", {});
    CHECK(same_tensors(kGoldens / name, folder / "hf"));
    const Json before = read_json_file(kGoldens / name / "config.json");
    const Json after = read_json_file(folder / "hf" / "config.json");
    for (const auto& [key, value] : after.items()) {
      INFO(key);
      if (before.contains(key)) CHECK(before.at(key) == value);
    }
    if (name == std::string("olmo3")) {
      CHECK_THROWS_WITH(
          export_model(folder / "ours", folder / "olmo", {.format = ExportFormat::kOlmo}),
          Catch::Contains("OLMo's own config has no `model.sliding_window`"));
      continue;
    }
    export_model(folder / "ours", folder / "olmo", {.format = ExportFormat::kOlmo});
    CHECK(same_tensors(folder / "ours", folder / "olmo"));
    import_model(folder / "olmo", folder / "again/");  // as a shell completes it
    CHECK(same_tensors(folder / "ours", folder / "again"));
    CHECK(store::CheckpointReader(folder / "again/step0").config().at("model").at("n_layers") ==
          store::CheckpointReader(folder / "ours/step0").config().at("model").at("n_layers"));
    CHECK(imported.files == std::vector<std::string>{"step0/checkpoint.h5", "step0/manifest.json"});
  }
}

TEST_CASE("an imported model keeps the special tokens of its config, those it lacks, too",
          "[models]") {
  for (const Json& id : {Json(7), Json()}) {
    const test::TemporaryDirectory folder;
    fs::copy(kGoldens / "olmo1", folder / "model");
    Json config = read_json_file(folder / "model/config.json");
    config.update({{"bos_token_id", id}, {"eos_token_id", id}, {"pad_token_id", id}});
    std::ofstream(folder / "model/config.json") << config;
    import_model(folder / "model", folder / "ours");
    const auto ids = models::find_model(folder / "ours").tokenizer.ids;
    CHECK(or_null(ids.bos) == id);
    CHECK(or_null(ids.eos) == id);
    CHECK(or_null(ids.pad) == id);
    import_model(folder / "ours", folder / "again");
    export_model(folder / "again", folder / "hf", {});
    const Json exported = read_json_file(folder / "hf/config.json");
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      INFO(key);
      CHECK(exported.at(key) == id);
    }
  }
}

TEST_CASE("an imported checkpoint is whole, of weights, and can be trained from", "[models]") {
  const test::TemporaryDirectory folder;
  import_model(kGoldens / "olmo1_layout", folder / "ours");
  const store::CheckpointReader reader(folder / "ours/step0");
  CHECK(reader.kind() == store::CheckpointKind::kWeights);
  CHECK(reader.verify().empty());
  const auto config = models::find_model(folder / "ours").config;
  CHECK(models::read_weights(folder / "ours", config).size() ==
        models::read_weights(kGoldens / "olmo1", config).size());
}

TEST_CASE("a model larger than a shard is written in shards with an index", "[models]") {
  const test::TemporaryDirectory folder;
  const auto converted = export_model(kGoldens / "olmo2", folder / "hf", {.shard_bytes = 10'000});
  CHECK(fs::exists(folder / "hf/model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(folder / "hf/model.safetensors"));
  CHECK(converted.files.size() > 4);
  for (const auto& file : converted.files) CHECK(fs::file_size(folder / "hf" / file) < 12'000);
  CHECK(same_tensors(kGoldens / "olmo2", folder / "hf"));
  const Json index = read_json_file(folder / "hf/model.safetensors.index.json");
  CHECK(index.at("metadata").at("total_size").get<std::size_t>() ==
        read_json_file(kGoldens / "olmo2/model.safetensors.index.json")
            .at("metadata")
            .at("total_size")
            .get<std::size_t>());
}

TEST_CASE("an export in bf16 has every value rounded to nearest", "[models]") {
  const test::TemporaryDirectory folder;
  export_model(kGoldens / "olmo1", folder / "hf", {.bf16 = true});
  CHECK(read_json_file(folder / "hf/config.json").at("torch_dtype") == "bfloat16");
  const store::SafetensorsFile rounded(folder / "hf/model.safetensors");
  const store::SafetensorsFile exact(kGoldens / "olmo1/model.safetensors");
  for (const auto& entry : rounded.entries()) {
    CHECK(entry.dtype == "BF16");
    CHECK(at::equal(rounded.tensor(entry.name), exact.tensor(entry.name).to(at::kBFloat16)));
  }
}

TEST_CASE("a known tokenizer goes with an export, with the names of its special tokens",
          "[models]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGoldens / "olmo1", folder / "model");
  fs::copy_file(OLMO_TEST_DATA "/data/tokenizer_small.json", folder / "model/tokenizer.json");
  const auto converted = export_model(folder / "model", folder / "hf", {});
  CHECK(converted.files == std::vector<std::string>{"config.json", "model.safetensors",
                                                    "tokenizer.json", "tokenizer_config.json"});
  const Json config = read_json_file(folder / "hf/tokenizer_config.json");
  CHECK(config.at("tokenizer_class") == "PreTrainedTokenizerFast");
  CHECK(config.contains("eos_token"));
}

TEST_CASE("nothing is overwritten, and a failure leaves nothing behind", "[models]") {
  const test::TemporaryDirectory folder;
  fs::create_directory(folder / "there");
  CHECK(kind_of_export(kGoldens / "olmo1", folder / "there") == ErrorKind::kUsage);
  CHECK(kind_of_export(folder / "none", folder / "new") == ErrorKind::kInput);
  fs::copy(kGoldens / "olmo1", folder / "damaged");
  fs::resize_file(folder / "damaged/model.safetensors", 9000);
  CHECK(kind_of_export(folder / "damaged", folder / "new") == ErrorKind::kDamaged);
  CHECK_THROWS_AS(import_model(folder / "damaged", folder / "new"), Error);
  CHECK(entries(folder.path()) == 2);
  CHECK(entries(folder / "there") == 0);
}

TEST_CASE("a model that Hugging Face has no class for is exported for OLMo only", "[models]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGoldens / "olmo1_layout", folder / "model");
  std::ofstream(folder / "model/config.yaml", std::ios::app) << "\n";
  std::string yaml = read_file(folder / "model/config.yaml");
  yaml.replace(yaml.find("clip_qkv: 0.5"), 13, "scale_logits: true");
  std::ofstream(folder / "model/config.yaml") << yaml;
  CHECK(kind_of_export(folder / "model", folder / "hf") == ErrorKind::kUsage);
  CHECK_NOTHROW(export_model(folder / "model", folder / "olmo", {.format = ExportFormat::kOlmo}));
  CHECK(models::find_model(folder / "olmo").config.scale_logits);
  CHECK(
      read_json_file(folder / "olmo/config.yaml").at("model").at("rope_theta").is_number_integer());
}
