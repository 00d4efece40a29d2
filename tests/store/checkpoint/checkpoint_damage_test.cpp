// Whatever happens to the files of a checkpoint: it is read as it was saved, or it is refused with
// Error.
#include <fstream>
#include <functional>
#include <random>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

enum class Outcome { kSame, kRefused, kWrong };

Outcome read(const fs::path& checkpoint, const CheckpointContents& original) {
  try {
    return same(read_checkpoint(checkpoint), original) ? Outcome::kSame : Outcome::kWrong;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kDamaged || error.kind() == ErrorKind::kInput
               ? Outcome::kRefused
               : Outcome::kWrong;
  }
}

struct Saved {
  TempFolder folder;
  CheckpointContents contents = example(100, 1, 70);
  fs::path path = save_checkpoint(folder.path(), contents).path;
};

/// Changes the manifest and gives it a matching digest of itself, as an attacker would. Returns the
/// error's sentence, or nothing if the checkpoint was read.
std::string forged(const Saved& saved, const std::function<void(Json&)>& change) {
  const fs::path file = saved.path / kManifestName;
  const std::string original = read_file(file);
  Json json = Json::parse(original);
  json.erase("sha256");
  change(json);
  json["sha256"] = sha256(json.dump()).hex();
  write(file, json.dump());
  std::string sentence;
  try {
    read_checkpoint(saved.path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDamaged);
    sentence = error.what();
  }
  write(file, original);
  return sentence;
}

Json& dataset(Json& manifest, std::size_t index) { return manifest["files"][0]["datasets"][index]; }

}  // namespace

TEST_CASE("a flipped byte of the data file is always found", "[store]") {
  const Saved saved;
  const fs::path file = saved.path / kDataFileName;
  std::string bytes = read_file(file);
  std::mt19937 random(1);
  for (std::size_t at = 0; at < bytes.size(); at += 1 + random() % 97) {
    const char original = bytes[at];
    bytes[at] = static_cast<char>(original ^ (1 << (random() % 8)));
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at)).put(bytes[at]).flush();
    INFO("byte " << at);
    REQUIRE(read(saved.path, saved.contents) == Outcome::kRefused);
    bytes[at] = original;
    out.seekp(static_cast<std::streamoff>(at)).put(original).flush();
  }
  CHECK(read(saved.path, saved.contents) == Outcome::kSame);
}

TEST_CASE("a changed byte of the manifest is found, or changes nothing", "[store]") {
  const Saved saved;
  const fs::path file = saved.path / kManifestName;
  const std::string original = read_file(file);
  std::mt19937 random(2);
  for (std::size_t at = 0; at < original.size(); at += 1 + random() % 29) {
    std::string bytes = original;
    bytes[at] = static_cast<char>(random() % 256);
    write(file, bytes);
    INFO("byte " << at);
    REQUIRE(read(saved.path, saved.contents) != Outcome::kWrong);
  }
}

TEST_CASE("a truncated file is refused wherever it ends, and so is a longer one", "[store]") {
  const Saved saved;
  std::mt19937 random(3);
  for (const char* name : {kDataFileName, kManifestName}) {
    const fs::path file = saved.path / name;
    const std::string original = read_file(file);
    for (std::size_t length = 0; length + 2 < original.size(); length += 1 + random() % 1499) {
      write(file, original.substr(0, length));
      INFO(name << " cut to " << length);
      REQUIRE(read(saved.path, saved.contents) == Outcome::kRefused);
    }
    write(file, original + "x");
    CHECK(read(saved.path, saved.contents) == Outcome::kRefused);
    write(file, original);
  }
  CHECK(read(saved.path, saved.contents) == Outcome::kSame);
}

TEST_CASE("a missing file, or a folder in its place, is refused", "[store]") {
  for (const char* name : {kDataFileName, kManifestName}) {
    const Saved saved;
    fs::remove(saved.path / name);
    CHECK(read(saved.path, saved.contents) == Outcome::kRefused);
    fs::create_directory(saved.path / name);
    CHECK(read(saved.path, saved.contents) == Outcome::kRefused);
  }
}

TEST_CASE("a checkpoint without its tensors is damaged, and no bad input", "[store]") {
  const Saved saved;
  fs::remove(saved.path / kDataFileName);
  try {
    const CheckpointReader reader(saved.path);
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDamaged);
    CHECK(std::string(error.what()).find("is missing") != std::string::npos);
  }
}

TEST_CASE("the manifest of another checkpoint does not fit", "[store]") {
  const Saved saved;
  const auto other = save_checkpoint(saved.folder.path(), example(101, 5, 70)).path;
  fs::copy_file(other / kManifestName, saved.path / kManifestName,
                fs::copy_options::overwrite_existing);
  CHECK(read(saved.path, saved.contents) == Outcome::kRefused);
}

TEST_CASE("the sentence names the tensor whose bytes changed", "[store]") {
  const Saved saved;
  const auto damaged = CheckpointReader(saved.path).datasets().at(1);
  std::fstream out(saved.path / kDataFileName, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(damaged.offset)).put('?').flush();
  const auto sentences = CheckpointReader(saved.path).verify();
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0].find("/model/transformer.blocks.0.att_proj.weight") != std::string::npos);
}

TEST_CASE("a newer format is refused by name", "[store]") {
  const Saved saved;
  CHECK(forged(saved, [](Json& m) { m["format_version"] = 99; }).find("use a newer olmo-harness") !=
        std::string::npos);
}

TEST_CASE("a forged manifest cannot make the reader leave the file or the memory", "[store]") {
  const std::vector<std::function<void(Json&)>> forgeries = {
      [](Json& m) { dataset(m, 0)["offset"] = 1ULL << 62U; },
      [](Json& m) { dataset(m, 0)["offset"] = -1; },
      [](Json& m) { dataset(m, 0)["offset"] = 1e300; },
      [](Json& m) { dataset(m, 0)["offset"] = dataset(m, 1)["offset"]; },
      [](Json& m) {
        dataset(m, 0)["shape"] = {1ULL << 40U, 1ULL << 40U};
      },
      [](Json& m) {
        dataset(m, 0)["shape"] = {-70, -17};
      },
      [](Json& m) { dataset(m, 0)["shape"] = {70, 17, 1, 1, 1, 1, 1, 1, 1, 1}; },
      [](Json& m) { dataset(m, 0)["shape"] = "70"; },
      [](Json& m) { dataset(m, 0)["dtype"] = "float128"; },
      [](Json& m) { dataset(m, 0)["bytes"] = 0; },
      [](Json& m) { dataset(m, 0)["sha256"] = "00"; },
      [](Json& m) { dataset(m, 0)["path"] = dataset(m, 1)["path"]; },
      [](Json& m) { dataset(m, 0).erase("path"); },
      [](Json& m) { dataset(m, 0) = 7; },
      [](Json& m) { m["files"][0]["name"] = "../checkpoint.h5"; },
      [](Json& m) { m["files"][0]["bytes"] = 1ULL << 50U; },
      [](Json& m) { m["files"] = Json::array(); },
      [](Json& m) { m["files"] = 3; },
      [](Json& m) { m["kind"] = "sharded"; },
      [](Json& m) { m["step"] = -4; },
      [](Json& m) { m["format"] = "something else"; },
      [](Json& m) { m["format_version"] = "1"; },
      [](Json& m) { m["tensors_sha256"] = std::string(64, '0'); },
      [](Json& m) { m.erase("created_utc"); },
      [](Json& m) {
        for (int i = 0; i < 5000; ++i) m["deep"] = Json::array({m["deep"]});
      },
  };
  const Saved saved;
  for (std::size_t i = 0; i < forgeries.size(); ++i) {
    INFO("forgery " << i);
    CHECK(forged(saved, forgeries[i]) != "");
  }
}

TEST_CASE("a manifest that is no object is refused", "[store]") {
  const Saved saved;
  for (const std::string text :
       {"", "null", "[]", "{}", "\"x\"", "{\"format\":\"olmo-harness-checkpoint\"}"}) {
    write(saved.path / kManifestName, text);
    CHECK(read(saved.path, saved.contents) == Outcome::kRefused);
  }
  write(saved.path / kManifestName, std::string(1 << 20, '['));
  CHECK(read(saved.path, saved.contents) == Outcome::kRefused);
}

}  // namespace olmo::store::test
