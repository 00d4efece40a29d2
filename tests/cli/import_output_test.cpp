// What `runs import` prints, and the configs that it takes.
#include "cli/import_output.h"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

struct Folder {
  TemporaryDirectory folder;

  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  }
};

bool holds(const std::vector<std::string>& notes, const std::string& text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const auto& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("the mapping of a log fits into 80 columns, whatever its names", "[cli]") {
  const Folder folder;
  std::string header =
      "_step,loss,tps," + std::string(300, 'x') + ",eval/\x1b[31m" + std::string(99, 'y');
  std::string row = "1,2,3,4,5";
  for (int i = 0; i < 100; ++i) {
    header += ",eval/task_" + std::to_string(i) + ",other " + std::to_string(i);
    row += ",1,2";
  }
  const auto log = import::read_step_log(folder.file("wide.csv", header + "\n" + row + "\n"), {});
  const std::string text = cli::mapping_text(log);
  INFO(text);
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CHECK(line.size() <= 80);
    CHECK(line.find('\x1b') == std::string::npos);
  }
  CHECK(count < 16);
  CHECK(text.find("  step                          _step\n") != std::string::npos);
  CHECK(text.find("  101 metrics ") != std::string::npos);
  CHECK(text.find("  101 ignored ") != std::string::npos);
  CHECK(text.find(" more\n") != std::string::npos);
  const auto json = cli::mapping_json(log);
  CHECK(json["metrics"].size() == 101);
  CHECK(json["ignored"].size() == 101);
}

TEST_CASE("what is not known of a log is said", "[cli]") {
  const Folder folder;
  const auto notes = [&](const std::string& text, const import::StepLogOptions& options = {},
                         const LossMeaning& losses = {LossMean::kLabels, LossSpan::kStep}) {
    return cli::import_notes({import::read_step_log(folder.file("a.csv", text), options)}, options,
                             import::FileOrder::kGiven, losses);
  };
  const auto bare = notes("_step,loss,tps\n1,3,100\n2,,100\n", {}, {});
  CHECK(holds(bare, "(--loss-mean)"));
  CHECK_FALSE(holds(bare, "(--loss-span)"));  // of every step
  CHECK(holds(notes("step,loss\n1,3\n3,3\n", {}, {}), "(--loss-span)"));
  CHECK(holds(bare, "_step counts the calls of wandb.log"));
  CHECK(holds(bare, "the steps are the axis"));
  CHECK(holds(bare, "throughput is of one device"));
  CHECK(holds(bare, "a.csv: 1 row without a loss"));
  CHECK(notes("step,loss,tps\n1,3,100\n", {.tokens_per_step = 64, .devices = 2}).empty());
  CHECK(holds(notes("tokens,loss\n1,3\n"), "no step is known: the tokens are the axis"));
  CHECK(holds(notes("step,loss\n3,1\n2,1\n1,1\n"), "turned round"));
  CHECK(holds(notes("step,loss\n1,1\n2,1\n1,1\n"), "from step 2 back to step 1 (line 4)"));
}

TEST_CASE("configs of other trainers are read from YAML, from JSON and out of W&B's wrapping",
          "[cli]") {
  const Folder folder;
  const auto config = [&](const std::string& name, const std::string& text) {
    return Json::parse(cli::read_foreign_config(folder.file(name, text)).text);
  };
  const Json expected = {
      {"seed", 6198}, {"model", {{"d_model", 2048}}}, {"optimizer", {{"learning_rate", 4e-4}}}};
  CHECK(config("olmo.yaml",
               "seed: 6198\nmodel:\n  d_model: 2048\noptimizer:\n  learning_rate: 4.0e-4\n") ==
        expected);
  CHECK(config("w.yaml",
               "wandb_version: 1\n\n_wandb:\n  desc: null\n  value:\n    python_version: 3.11\n"
               "seed:\n  desc: null\n  value: 6198\nmodel:\n  desc: null\n  value:\n    d_model: "
               "2048\noptimizer:\n  value:\n    learning_rate: 0.0004\n") == expected);
  CHECK(config("c.json", R"({"seed": {"value": 6198, "desc": null}, "model": {"value":
        {"d_model": 2048}}, "optimizer": {"value": {"learning_rate": 4e-4}}})") == expected);
  CHECK(config("plain.json", R"({"a": {"value": 1}, "b": 2, "c": 3})") ==
        Json({{"a", {{"value", 1}}}, {"b", 2}, {"c", 3}}));  // not W&B's
  CHECK(config("r.yaml", "save_folder: ${path.choose:/x,/y}/z\n")["save_folder"] ==
        "${path.choose:/x,/y}/z");
  CHECK(cli::read_foreign_config(folder.file("s.yaml", "seed: 7\n")).seed == 7);
  CHECK(cli::read_foreign_config("").text == "{}");
  CHECK_THROWS_WITH(config("list.yaml", "- 1\n"), Catch::Contains("list.yaml:1: is no config"));
  CHECK_THROWS_WITH(config("bad.yaml", "a: [1\n"), Catch::Contains("bad.yaml:"));
}

TEST_CASE("of another trainer's config the size of the model and the length are known, if it tells",
          "[cli]") {
  const Folder folder;
  const auto read = [&](const std::string& name, const std::string& text) {
    return cli::read_foreign_config(folder.file(name, text));
  };
  constexpr std::int64_t kSize = 64 * 8 + 2 * (4 * 8 * 8 + 3 * 8 * 16);
  const std::string model =
      "{d_model: 8, n_layers: 2, n_heads: 2, mlp_hidden_size: 32, vocab_size: 64, embedding_size: "
      "64, weight_tying: true, rope: true, activation_type: swiglu, include_bias: false, "
      "attention_layer_norm: false, layer_norm_type: default, layer_norm_with_affine: false, "
      "max_sequence_length: 4, eos_token_id: 1, pad_token_id: 2, attention_dropout: 0.0, "
      "residual_dropout: 0.0, embedding_dropout: 0.0}";
  CHECK(read("olmo.yaml", "model: " + model + "\nother: 1\n").n_parameters == kSize);
  CHECK(read("w.yaml", "model:\n  value: " + model + "\n").n_parameters == kSize);
  CHECK(read("hf.json", R"({"model_type": "olmo", "hidden_size": 8, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 64,
        "tie_word_embeddings": true, "max_position_embeddings": 4})")
            .n_parameters == kSize);
  const auto unknown = read("llama.json", R"({"model_type": "llama", "hidden_size": 8})");
  CHECK_FALSE(unknown.n_parameters);
  CHECK_FALSE(unknown.max_steps);
  CHECK_FALSE(read("seed.yaml", "seed: 7\n").n_parameters);

  const std::string ours = R"({"model": {"d_model": 8, "n_layers": 2, "n_heads": 2,
        "vocab_size": 64, "max_sequence_length": 4}, "global_train_batch_size": 2)";
  CHECK(read("steps.json", ours + R"(, "max_duration": 70})").max_steps == 70);
  CHECK(read("tokens.json", ours + R"(, "max_duration": "80T"})").max_steps == 10);
  CHECK_FALSE(read("none.json", ours + "}").max_steps);
}

TEST_CASE("of W&B's metadata the machine is kept, its GPUs as those of one node", "[cli]") {
  const Folder folder;
  const auto file = folder.file("wandb-metadata.json",
                                R"({"host": "nid001", "os": "Linux-5.14", "gpu": "MI250X",
      "gpu_count": 8, "codePath": "x", "disk": {"total": 1}})");
  CHECK(Json::parse(cli::read_foreign_machine(file)) ==
        Json({{"host", "nid001"}, {"os", "Linux-5.14"}, {"gpu", "MI250X"}, {"gpus_of_a_node", 8}}));
  CHECK(cli::read_foreign_machine("") == "{}");
  CHECK_THROWS_WITH(cli::read_foreign_machine(folder.file("list.json", "[1]")),
                    Catch::EndsWith("must be a JSON object"));
}

TEST_CASE("W&B's metadata that cannot be so is refused by file and key", "[cli]") {
  const Folder folder;
  const auto refused = [&](const char* text, const char* says) {
    CHECK_THROWS_WITH(cli::read_foreign_machine(folder.file("meta.json", text)),
                      Catch::Contains("meta.json") && Catch::Contains(says));
  };
  refused(R"({"gpu_count": "8"})", "`gpu_count` must be a whole number, is \"8\"");
  refused(R"({"gpu_count": -1})", "`gpu_count`");
  refused(R"({"host": 5})", "`host` must be text, is 5");
  refused("{\"host\": ", "is not valid JSON");
  CHECK(cli::read_foreign_machine(folder.file("meta.json", R"({"gpu_count": null})")) == "{}");
}

TEST_CASE("a config that is not in OLMo's keys is kept with its model in them", "[cli]") {
  const Folder folder;
  const auto read = [&](const Json& config) {
    return cli::read_foreign_config(folder.file("config.json", config.dump()));
  };
  Json config = {{"model_type", "olmo"}, {"hidden_size", 8}, {"num_attention_heads", 2}};
  CHECK(read(config).translated);
  CHECK(Json::parse(read(config).text).at("model").at("d_model") == 8);
  config["model_type"] = "llama";
  CHECK_FALSE(read(config).translated);
  CHECK(Json::parse(read(config).text) == config);
}

}  // namespace olmo::test
