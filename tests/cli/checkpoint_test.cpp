#include <fstream>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "support/process.h"

namespace olmo::store::test {
namespace {

olmo::test::Finished checkpoint(const std::string& arguments) {
  return olmo::test::run(OLMO_BINARY " checkpoint " + arguments + " 2>/dev/null");
}

}  // namespace

TEST_CASE("checkpoint inspect shows a run's latest checkpoint", "[cli]") {
  const TempFolder folder;
  save_checkpoint(folder.path(), example(100));
  const auto result = checkpoint("inspect " + folder.path().string() + " --json --tensors");
  CHECK(result.code == 0);
  const Json json = Json::parse(result.output);
  CHECK(json["summary"]["step"] == 100);
  CHECK(json["trainer"] == *example(100).trainer);
  CHECK(json["config"] == *example(100).config);
  CHECK(json["groups"]["model"]["elements"] == 300 * 17 + 24 * 8 + 10 + 1);
  CHECK(json["tensors"][0]["path"] == "/model/transformer.wte.weight");
  CHECK(checkpoint("inspect " + folder.path().string()).output.find("tokens seen") !=
        std::string::npos);
}

TEST_CASE("checkpoint verify tells a whole checkpoint from a changed and from an unreadable one",
          "[cli]") {
  const TempFolder folder;
  const auto path = save_checkpoint(folder.path(), example(1)).path;
  CHECK(checkpoint("verify " + path.string()).code == 0);
  CHECK(checkpoint("verify " + folder.path().string() + "/nothing").code == 3);
  const auto offset = CheckpointReader(path).datasets().at(0).offset;
  std::fstream(path / "checkpoint.h5", std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(offset))
      .put('?')
      .put('?');
  const auto changed = checkpoint("verify " + path.string() + " --json");
  CHECK(changed.code == 5);
  CHECK(Json::parse(changed.output)["ok"] == false);
  std::filesystem::resize_file(path / "checkpoint.h5", 1000);
  CHECK(checkpoint("verify " + path.string()).code == 4);
}

TEST_CASE("checkpoint diff exits 5 and names the tensor where two differ", "[cli]") {
  const TempFolder folder;
  auto changed = example(1);
  static_cast<std::uint32_t*>(changed.model[2].tensor.mutable_data_ptr())[9] +=
      1;  // 1.0 to its neighbour
  const auto a = save_checkpoint(folder.path() / "a", example(1)).path.string();
  const auto b = save_checkpoint(folder.path() / "b", changed).path.string();
  CHECK(checkpoint("diff " + a + " " + a).code == 0);
  const auto result = checkpoint("diff " + a + " " + b + " --json");
  CHECK(result.code == 5);
  const Json json = Json::parse(result.output);
  CHECK(json["unequal"] == 1);
  CHECK(json["differences"][0]["name"] == "model/transformer.blocks.0.attn_norm.weight");
  CHECK(json["differences"][0]["max_ulp"] == 1);
  CHECK(json["differences"][0]["first"]["index"] == 9);
}

TEST_CASE("checkpoint import and export lead back to the same tensors", "[cli]") {
  const TempFolder folder;
  const std::string model = OLMO_TEST_DATA "/train/hf/olmo2";
  const auto to = [&](const char* name) { return (folder.path() / name).string(); };
  const auto imported = checkpoint("import " + model + " --to " + to("ours") + " --json");
  CHECK(imported.code == 0);
  const Json json = Json::parse(imported.output);
  CHECK(json["source_format"] == "hf-olmo2");
  CHECK(json["files"].size() == 2);
  CHECK(json["weights_digest"].get<std::string>().size() == 64);
  CHECK(checkpoint("verify " + to("ours")).code == 0);
  const auto exported = checkpoint("export " + to("ours") + " --to " + to("hf"));
  CHECK(exported.code == 0);
  CHECK(exported.output.find("config.json") != std::string::npos);
  CHECK(checkpoint("diff " + model + " " + to("hf")).code == 0);
  CHECK(checkpoint("export " + to("hf") + " --to " + to("olmo") + " --format olmo").code == 0);
  CHECK(checkpoint("diff " + to("ours") + " " + to("olmo")).code == 0);
}

TEST_CASE("checkpoint import and export refuse what they cannot read, and never overwrite",
          "[cli]") {
  const TempFolder folder;
  const std::string model = OLMO_TEST_DATA "/train/hf/olmo1";
  const std::string there = (folder.path() / "there").string();
  const std::string fresh = (folder.path() / "new").string();
  std::filesystem::create_directory(there);
  CHECK(checkpoint("export " + model + " --to " + there).code == 2);
  CHECK(checkpoint("export " + model + " --to " + fresh + " --format gguf").code == 2);
  CHECK(checkpoint("export " + there + " --to " + fresh).code == 3);
  std::filesystem::copy(model, folder.path() / "cut");
  std::filesystem::resize_file(folder.path() / "cut/model.safetensors", 5000);
  CHECK(checkpoint("import " + (folder.path() / "cut").string() + " --to " + fresh).code == 4);
  CHECK_FALSE(std::filesystem::exists(fresh));
}

}  // namespace olmo::store::test
