#include "models/load_model.h"

#include <fstream>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/json.h"
#include "models/convert_model.h"
#include "store/checkpoint/checkpoint.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/flips.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"
#include "support/temporary_directory.h"

using namespace olmo;
using models::find_model;
using models::load_model;
using models::ModelFormat;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = OLMO_TEST_DATA "/train/hf";

Policy policy() { return resolve_policy("portable", "auto", 2); }

/// A golden folder in a place where it can be changed.
class Copy {
 public:
  explicit Copy(const std::string& golden) {
    fs::copy(kGoldens / golden, path(), fs::copy_options::recursive);
  }
  [[nodiscard]] fs::path path() const { return folder_ / "model"; }
  [[nodiscard]] fs::path operator/(const std::string& file) const { return path() / file; }

  void change_json(const std::string& file, const std::string& key, const Json& value) const {
    Json json = read_json_file(path() / file);
    json[key] = value;
    std::ofstream(path() / file) << json.dump();
  }
  void change_tensors(const std::function<void(NamedTensors&)>& change) const {
    NamedTensors tensors;
    const store::SafetensorsFile file(path() / "model.safetensors");
    for (const auto& entry : file.entries())
      tensors.push_back({entry.name, file.tensor(entry.name)});
    change(tensors);
    store::write_safetensors(path() / "model.safetensors", tensors);
  }
  /// Kind and message of the error that loading must end with.
  [[nodiscard]] std::pair<ErrorKind, std::string> refusal() const {
    try {
      load_model(path(), policy());
    } catch (const Error& error) {
      return {error.kind(), error.what()};
    }
    FAIL("was loaded");
    return {};
  }

 private:
  test::TemporaryDirectory folder_;
};

void check_refused(const Copy& copy, ErrorKind kind, const std::string& part) {
  const auto [found, message] = copy.refusal();
  CHECK(found == kind);
  CHECK_THAT(message, Catch::Contains(part));
  CHECK_THAT(message, Catch::Contains(copy.path().string()));
}

at::Tensor& tensor(NamedTensors& tensors, const std::string& name) {
  for (auto& entry : tensors) {
    if (entry.name == name) return entry.tensor;
  }
  throw Error(ErrorKind::kFailure, name);
}

}  // namespace

TEST_CASE("models that other software saved give its logits and digests", "[models]") {
  const auto expected = test::read_golden_tensors(kGoldens / "expected.safetensors");
  const Json digests = read_json_file(kGoldens / "expected.json");
  const std::vector<std::tuple<std::string, std::string, ModelFormat>> cases = {
      {"olmo2", "olmo2", ModelFormat::kHf2},
      {"olmo3", "olmo3", ModelFormat::kHf3},
      {"olmo1", "olmo1", ModelFormat::kHf},
      {"olmo1_layout", "olmo1", ModelFormat::kOlmo},
      {"olmo1_hf_olmo", "olmo1", ModelFormat::kHfOlmo},
      {"olmo1_tied", "olmo1_tied", ModelFormat::kHf}};
  for (const auto& [folder, name, format] : cases) {
    INFO(folder);
    auto loaded = load_model(kGoldens / folder, policy());
    CHECK(loaded.files.format == format);
    CHECK(loaded.weights_digest.hex() == digests.at(name).get<std::string>());
    CHECK(loaded.files.tokenizer.ids.eos == 59);
    CHECK_FALSE(loaded.files.tokenizer.file);
    const auto logits = loaded.model.logits(expected.at("ids"));
    CHECK(test::max_abs_difference(logits, expected.at(name)) < 1e-5);
  }
  CHECK(find_model(kGoldens / "olmo1_layout").tokenizer.identifier == "no/such-tokenizer");
}

TEST_CASE("a model that OLMo-core saved gives its logits", "[models]") {
  const fs::path folder = OLMO_TEST_DATA "/train/olmo_core";
  const auto expected = test::read_golden_tensors(folder / "expected.safetensors");
  const std::string name = GENERATE("olmo2", "olmo3");
  auto loaded = load_model(folder / name, policy());
  CHECK(loaded.files.format == ModelFormat::kOlmoCore);
  CHECK(loaded.files.tokenizer.identifier == "no/such-tokenizer");
  CHECK(loaded.files.tokenizer.ids.eos == 59);
  const auto logits = loaded.model.logits(expected.at("ids"));
  CHECK(test::max_abs_difference(logits, expected.at(name)) < 1e-5);
}

namespace {

/// One sequence, in which every next token is a target.
TokenForest forest_of(const at::Tensor& ids) {
  TokenForest forest{.ids = {}, .segments = {{-1, 0, ids.numel(), 0}}, .targets = {}};
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    forest.ids.push_back(ids[i].item<std::int64_t>());
    if (i > 0) forest.targets.push_back({i - 1, forest.ids.back()});
  }
  return forest;
}

}  // namespace

TEST_CASE("sequences beyond a sliding window are scored as transformers does", "[models]") {
  auto loaded = load_model(kGoldens / "olmo3", policy());
  const auto expected = test::read_golden_tensors(kGoldens / "expected.safetensors");
  const auto& ids = expected.at("olmo3_long_ids");
  const auto& likelihoods = expected.at("olmo3_long");
  const auto forest = forest_of(ids);
  std::vector<TokenScore> scores(forest.targets.size());
  loaded.model.score(forest, scores);
  for (std::size_t i = 0; i < scores.size(); ++i)
    CHECK(scores[i].log_prob ==
          Approx(likelihoods[static_cast<std::int64_t>(i)].item<double>()).margin(1e-5));
}

TEST_CASE("logits beyond a sliding window tell what scores there do", "[models]") {
  auto loaded = load_model(kGoldens / "olmo3", policy());
  const auto ids =
      test::read_golden_tensors(kGoldens / "expected.safetensors").at("olmo3_long_ids");
  REQUIRE(ids.numel() > *loaded.model.config().sliding_window);
  const auto forest = forest_of(ids);
  std::vector<TokenScore> scores(forest.targets.size());
  loaded.model.score(forest, scores);
  const auto log_probs = loaded.model.logits(ids.view({1, -1}))[0].to(at::kDouble).log_softmax(-1);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    CHECK(scores[i].log_prob ==
          Approx(log_probs[row][ids[row + 1].item<std::int64_t>()].item<double>()).margin(1e-6));
  }
}

TEST_CASE("gradients beyond a sliding window are those of transformers", "[models]") {
  const auto loaded = load_model(kGoldens / "olmo3", policy());
  const auto expected = test::read_golden_tensors(kGoldens / "expected.safetensors");
  const auto ids = expected.at("olmo3_long_ids").view({1, -1});
  model::Olmo trained(loaded.model.config(), policy());
  trained.load_weights(models::read_model_weights(loaded.files, false).tensors);
  const NamedTensors gradients = trained.make_gradients();
  const float scale = 1.0F / static_cast<float>(ids.numel() - 1);
  trained.forward_backward({ids, model::next_token_labels(ids)}, {.scale = scale}, gradients,
                           false);
  for (const auto& [name, gradient] : gradients) {
    INFO(name);
    const at::Tensor& wanted = expected.at("olmo3_grad." + name);
    CHECK(test::max_abs_difference(gradient, wanted) < 1e-5 * wanted.abs().max().item<double>());
  }
}

TEST_CASE("the digest does not depend on the container, the dtype or the threads", "[models]") {
  const test::TemporaryDirectory folder;
  models::import_model(kGoldens / "olmo1_tied", folder / "ours");
  models::export_model(folder / "ours", folder / "hf", {});
  models::export_model(folder / "hf", folder / "olmo", {.format = models::ExportFormat::kOlmo});
  models::export_model(folder / "ours", folder / "bf16", {.bf16 = true});
  const Json digests = read_json_file(kGoldens / "expected.json");
  for (const char* name : {"ours", "hf", "olmo", "bf16"}) {
    INFO(name);
    CHECK(load_model(folder / name, policy()).weights_digest.hex() ==
          digests.at("olmo1_tied").get<std::string>());
  }
}

TEST_CASE("a checkpoint of ours is loaded from its directory and from its run's", "[models]") {
  const test::TemporaryDirectory folder;
  const auto config = test::tiny_config();
  model::Olmo model(config, policy());
  model.init_weights(1);
  Json keys = Json::object();
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"d_model", 32},
                                                           {"n_heads", 4},
                                                           {"n_layers", 2},
                                                           {"mlp_ratio", 8},
                                                           {"layer_norm_with_affine", false},
                                                           {"max_sequence_length", 32},
                                                           {"vocab_size", 60},
                                                           {"embedding_size", 64},
                                                           {"eos_token_id", 59},
                                                           {"pad_token_id", 1}}) {
    keys[key] = value;
  }
  store::CheckpointContents contents;
  contents.trainer = Json{{"step", 7}, {"run_id", "20260101T000000-01234567"}};
  contents.config = Json{{"model", keys}, {"tokenizer", {{"identifier", "no/such-tokenizer"}}}};
  contents.model = model.parameters();
  store::save_checkpoint(folder.path(), contents);
  const auto ids = at::arange(24, at::kLong).reshape({2, 12});
  for (const auto& path : {folder.path(), folder / "step7", folder / "latest"}) {
    auto loaded = load_model(path, policy());
    CHECK(loaded.files.format == ModelFormat::kCheckpoint);
    CHECK(loaded.files.step == 7);
    CHECK(loaded.weights_digest == models::weights_digest(model.parameters()));
    CHECK(loaded.files.run_id == "20260101T000000-01234567");
    CHECK(loaded.files.tokenizer.identifier == "no/such-tokenizer");
    CHECK(test::same_bits(loaded.model.logits(ids), model.logits(ids)));
  }
}

TEST_CASE("a model may have more ids than the token files of a default config hold", "[models]") {
  const Copy olmo("olmo1_layout");
  std::string text = read_file(olmo / "config.yaml");
  text.replace(text.find("embedding_size: 64"), 18, "embedding_size: 100352");
  text.replace(text.find("vocab_size: 60"), 14, "vocab_size: 100278");
  std::ofstream(olmo / "config.yaml") << text;
  CHECK(find_model(olmo.path()).config.vocab_size == 100278);

  store::CheckpointContents contents;
  contents.kind = store::CheckpointKind::kWeights;
  contents.trainer = Json{{"step", 0}};
  contents.config = Json{{"model", {{"vocab_size", 100278}, {"embedding_size", 100352}}}};
  contents.model = {{"transformer.wte.weight", at::zeros({1, 1})}};
  store::save_checkpoint(olmo / "ours", contents);
  CHECK(find_model(olmo / "ours").config.vocab_size == 100278);
}

TEST_CASE("the tokenizer beside the weights is found", "[models]") {
  const Copy copy("olmo1");
  fs::copy_file(OLMO_TEST_DATA "/data/tokenizer_small.json", copy / "tokenizer.json");
  CHECK(find_model(copy.path()).tokenizer.file == copy / "tokenizer.json");
  models::import_model(copy.path(), copy / "ours");
  CHECK(find_model(copy / "ours").tokenizer.file == copy / "ours/tokenizer.json");
}

TEST_CASE("a tokenizer that is too large or ends its texts otherwise does not fit", "[models]") {
  const test::TemporaryDirectory folder;
  std::string text = read_file(OLMO_TEST_DATA "/data/tokenizer_small.json");
  for (std::size_t at; (at = text.find("<|end|>")) != std::string::npos;)
    text.replace(at, 7, "<|endoftext|>");
  const std::string name = (folder / "tokenizer.json").string();
  std::ofstream(name) << text;
  const auto tokenizer = data::Tokenizer::load(name);
  REQUIRE(tokenizer.token_to_id("<|endoftext|>") == 0);
  models::ModelFiles files{.path = "checkpoint"};
  files.config.embedding_size = files.config.vocab_size = 50304;
  const auto check = [&] { return models::check_tokenizer_fits(files, tokenizer, name); };
  CHECK_FALSE(check());  // the checkpoint does not say what its end-of-text token is
  CHECK(models::end_of_text(files, &tokenizer) == 0);
  const auto nameless = data::Tokenizer::load(OLMO_TEST_DATA "/data/tokenizer_small.json");
  CHECK_THROWS_WITH(models::end_of_text(files, &nameless),
                    Catch::Contains("no eos_token_id") && Catch::Contains("no <|endoftext|>"));
  files.tokenizer.ids.eos = 0;
  CHECK_FALSE(check());
  files.tokenizer.ids.eos = 50279;
  CHECK(models::end_of_text(files, &tokenizer) == 50279);
  REQUIRE(check());
  CHECK_THAT(*check(), Catch::Contains("swap these two"));
  files.tokenizer.ids.eos = 1;
  CHECK_THROWS_WITH(check(), Catch::Contains("belongs to another model"));
  files.config.embedding_size = files.config.vocab_size = 10;
  CHECK_THROWS_WITH(check(), Catch::Contains("only 10 rows"));
}

TEST_CASE("paths that hold no model are refused with what was looked for", "[models]") {
  const test::TemporaryDirectory folder;
  const auto refused = [&](const fs::path& path, const char* part) {
    CHECK_THROWS_WITH(find_model(path), Catch::Contains(part));
  };
  refused(folder / "none", "there is no such checkpoint");
  refused(folder.path(), "no complete checkpoint");
  fs::create_directory(folder / "step8");
  std::ofstream(folder / "step8/config.yaml") << "model: {}";
  fs::create_directory_symlink("step8", folder / "latest");
  refused(folder.path(), "give one of its checkpoints, e.g. ");
  std::ofstream(folder / "model.safetensors") << "x";
  refused(folder / "model.safetensors", "is a file");
  refused(folder.path(), "neither config.json");
}

TEST_CASE("weights that torch saved give the model that safetensors give", "[models]") {
  const auto digest_of = [](const fs::path& folder) {
    return load_model(folder, policy()).weights_digest;
  };
  const Copy hf("olmo1");
  const Digest of_hf = digest_of(hf.path());
  fs::remove(hf / "model.safetensors");
  check_refused(hf, ErrorKind::kInput, "neither model.safetensors nor pytorch_model.bin");
  for (const auto& file : fs::directory_iterator(kGoldens / "torch"))
    if (file.path().filename() != "model.pt") fs::copy(file, hf.path());
  CHECK(digest_of(hf.path()) == of_hf);

  const Copy olmo("olmo1_layout");
  const Digest of_olmo = digest_of(olmo.path());
  fs::remove(olmo / "model.safetensors");
  check_refused(olmo, ErrorKind::kInput, "neither model.safetensors nor model.pt");
  fs::copy(kGoldens / "torch/model.pt", olmo.path());
  CHECK(digest_of(olmo.path()) == of_olmo);
  std::fstream(olmo / "model.pt", std::ios::in | std::ios::out | std::ios::binary).seekp(6000)
      << "x";
  check_refused(olmo, ErrorKind::kDamaged, "its bytes do not have the checksum");
}

TEST_CASE("tensors that do not fit the config are named", "[models]") {
  const Copy copy("olmo1");
  SECTION("missing") {
    copy.change_tensors([](auto& tensors) {
      std::erase_if(tensors, [](const auto& x) { return x.name == "lm_head.weight"; });
    });
    check_refused(copy, ErrorKind::kInput, "`lm_head.weight` is missing");
  }
  SECTION("unknown") {
    copy.change_tensors([](auto& tensors) {
      tensors.push_back({"model.norm.weight", at::zeros({16})});
    });
    check_refused(copy, ErrorKind::kInput, "`model.norm.weight` is not a parameter");
  }
  SECTION("of another shape") {
    copy.change_tensors([](auto& tensors) {
      tensor(tensors, "model.layers.0.mlp.up_proj.weight") = at::zeros({24, 17});
    });
    check_refused(copy, ErrorKind::kInput, "has shape (24, 17), the config asks for (24, 16)");
  }
  SECTION("of integers") {
    copy.change_tensors([](auto& tensors) {
      tensor(tensors, "lm_head.weight") = at::zeros({64, 16}, at::kLong);
    });
    check_refused(copy, ErrorKind::kInput, "is I64, expected F32");
  }
  SECTION("of a config of impossible size") {
    copy.change_json("config.json", "num_hidden_layers", 4096);
    check_refused(copy, ErrorKind::kInput, "model.layers.1.");
    copy.change_json("config.json", "vocab_size", 1 << 24);
    check_refused(copy, ErrorKind::kInput, "has shape (64, 16)");
  }
}

TEST_CASE("a tied model may carry its head twice, but not two heads", "[models]") {
  const Copy copy("olmo1_tied");
  const auto add_head = [&](double change) {
    copy.change_tensors([&](auto& tensors) {
      std::erase_if(tensors, [](const auto& x) { return x.name == "lm_head.weight"; });
      at::Tensor head = tensor(tensors, "model.embed_tokens.weight").clone();
      head[3][4] += change;
      tensors.push_back({"lm_head.weight", head});
    });
  };
  add_head(0.0);
  CHECK_NOTHROW(load_model(copy.path(), policy()));
  add_head(1.0);
  check_refused(copy, ErrorKind::kInput, "differs from the embedding");
}

TEST_CASE("every dtype of the files gives the same model", "[models]") {
  const Copy copy("olmo1_tied");  // values of bf16
  const auto digest = load_model(copy.path(), policy()).weights_digest;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    copy.change_tensors([&](auto& tensors) {
      for (auto& entry : tensors) entry.tensor = entry.tensor.to(dtype);
    });
    // Values below fp16's smallest normal lose bits, so the last one is only close.
    const bool same = load_model(copy.path(), policy()).weights_digest == digest;
    CHECK((same || dtype == at::kHalf));
  }
}

TEST_CASE("a shard that is not there, cut short or damaged is named", "[models]") {
  const Copy copy("olmo2");
  const std::string shard = "model-00002-of-00003.safetensors";
  const std::string whole = read_file(copy / shard);
  const auto put = [&](const std::string& bytes) {
    std::ofstream(copy / shard, std::ios::binary) << bytes;
  };
  put(whole.substr(0, whole.size() / 2));
  check_refused(copy, ErrorKind::kDamaged, shard);
  put("");
  check_refused(copy, ErrorKind::kDamaged, shard);
  fs::remove(copy / shard);
  check_refused(copy, ErrorKind::kInput, shard);
  put(whole);
  CHECK_NOTHROW(load_model(copy.path(), policy()));
}

TEST_CASE("configs that are damaged or ask for what is not there are refused", "[models]") {
  const Copy hf("olmo1");
  hf.change_json("config.json", "rope_scaling", {{"type", "linear"}, {"factor", 2.0}});
  check_refused(hf, ErrorKind::kInput, "`rope_scaling`");
  std::ofstream(hf / "config.json") << "{\"model_type\": ";
  check_refused(hf, ErrorKind::kInput, "config.json");
  const Copy olmo("olmo1_layout");
  const std::string yaml = read_file(olmo / "config.yaml");
  const auto with = [&](const std::string& line) {
    std::ofstream(olmo / "config.yaml")
        << yaml.substr(0, yaml.find("  d_model")) << line << yaml.substr(yaml.find("  d_model"));
  };
  with("  alibi: true\n");
  check_refused(olmo, ErrorKind::kInput, "`model.alibi`");
  with("  embedding_dropout: 0.1\n");  // there already
  check_refused(olmo, ErrorKind::kInput, "embedding_dropout");
  std::ofstream(olmo / "config.yaml") << "run_name: nothing\n";
  check_refused(olmo, ErrorKind::kInput, "has no key `model`");
  std::ofstream(olmo / "config.yaml") << "model: {d_model: 16, n_heads: 4}\n";
  check_refused(olmo, ErrorKind::kInput, "`model.rope`");
  const Copy older("olmo1_hf_olmo");
  older.change_json("config.json", "include_bias", true);
  check_refused(older, ErrorKind::kInput, "`model.include_bias`");
}

TEST_CASE("random flips in a model's files give a model or an error, never a crash", "[models]") {
  const Copy copy("olmo2");
  for (const char* name :
       {"config.json", "model.safetensors.index.json", "model-00001-of-00003.safetensors"}) {
    const std::string whole = read_file(copy / name);
    test::Flips flips(whole, 0, 2000);
    for (int round = 0; round < 60; ++round) {
      std::ofstream(copy / name, std::ios::binary) << flips.next();
      try {
        load_model(copy.path(), policy());
      } catch (const Error& error) {
        CHECK((error.kind() == ErrorKind::kDamaged || error.kind() == ErrorKind::kInput));
      }
    }
    std::ofstream(copy / name, std::ios::binary) << whole;
  }
}
