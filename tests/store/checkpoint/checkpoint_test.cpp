#include "store/checkpoint/checkpoint.h"

#include <fstream>
#include <functional>
#include <limits>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/process/process.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "support/forked.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;

ErrorKind kind_of_failure(const std::function<void()>& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.kind();
  }
  FAIL("no error was thrown");
  return ErrorKind::kFailure;
}

}  // namespace

TEST_CASE("a checkpoint gives back every bit, and every document as it was", "[store]") {
  const TempFolder folder;
  const auto contents = example();
  const auto saved = save_checkpoint(folder.path(), contents);
  CHECK(saved.path == folder.path() / "step100");
  CHECK(saved.step == 100);
  CHECK(same(read_checkpoint(saved.path), contents));
  CHECK(saved.manifest == sha256_file(saved.path / "manifest.json"));
  const CheckpointReader reader(saved.path);
  CHECK(reader.verify().empty());
  CHECK(reader.tensors_digest() == saved.tensors);
  CHECK(reader.manifest_digest() == saved.manifest);
  CHECK(reader.bytes() == saved.bytes);
  CHECK(saved.bytes ==
        fs::file_size(saved.path / "checkpoint.h5") + fs::file_size(saved.path / "manifest.json"));
}

TEST_CASE("large tensors lie on pages of their own, and unaligned memory is written as well",
          "[store]") {
  const TempFolder folder;
  auto contents = example(7, 3, 20000);
  const at::Tensor odd = patterned({70001}, 9);
  contents.model.push_back({"odd", odd.narrow(0, 1, 70000)});  // 4 bytes beyond an aligned address
  const auto saved = save_checkpoint(folder.path(), contents);
  CHECK(same(read_checkpoint(saved.path), contents));
  const CheckpointReader reader(saved.path);
  for (const auto& dataset : reader.datasets()) {
    if (dataset.bytes >= 4096) CHECK(dataset.offset % 4096 == 0);
  }
}

TEST_CASE("an empty tensor, a scalar and other dtypes are kept", "[store]") {
  const TempFolder folder;
  auto contents = example();
  contents.model.push_back({"empty", at::empty({0, 4}, at::kFloat)});
  contents.model.push_back({"scalar", at::full({}, 0.1, at::kDouble)});
  contents.model.push_back({"counts", at::arange(1000, at::kLong)});
  CHECK(same(read_checkpoint(save_checkpoint(folder.path(), contents).path), contents));
}

TEST_CASE("a weights-only checkpoint has no optimizer, and says so", "[store]") {
  const TempFolder folder;
  auto contents = example();
  contents.kind = CheckpointKind::kWeights;
  CHECK(kind_of_failure([&] { save_checkpoint(folder.path(), contents); }) == ErrorKind::kFailure);
  contents.optim.clear();
  contents.optim_state = Json::object();
  const auto path = save_checkpoint(folder.path(), contents).path;
  CHECK(CheckpointReader(path).kind() == CheckpointKind::kWeights);
  CHECK(same(read_checkpoint(path), contents));
}

TEST_CASE("the weights of a full checkpoint can be read alone", "[store]") {
  const TempFolder folder;
  const auto contents = example();
  const auto read = read_checkpoint(save_checkpoint(folder.path(), contents).path, true);
  CHECK(read.kind == CheckpointKind::kWeights);
  CHECK(same_bits(read.model, contents.model));
  CHECK(read.optim.empty());
}

TEST_CASE("reading into tensors takes exactly the saved names, shapes and dtypes", "[store]") {
  const TempFolder folder;
  const auto contents = example();
  const CheckpointReader reader(save_checkpoint(folder.path(), contents).path);
  const auto blank = [&] {
    NamedTensors into;
    for (const auto& [name, tensor] : contents.model)
      into.push_back({name, at::empty_like(tensor)});
    return into;
  };
  auto into = blank();
  std::reverse(into.begin(), into.end());
  reader.read_into("model", into);
  std::reverse(into.begin(), into.end());
  CHECK(same_bits(into, contents.model));

  const auto kind = [&](const NamedTensors& target) {
    return kind_of_failure([&] { reader.read_into("model", target); });
  };
  into = blank();
  into[0].name = "transformer.other";
  CHECK(kind(into) == ErrorKind::kDamaged);
  into = blank();
  into.pop_back();
  CHECK(kind(into) == ErrorKind::kDamaged);
  into = blank();
  into[0].tensor = at::empty({17, 300}, at::kFloat);
  CHECK(kind(into) == ErrorKind::kDamaged);
  into = blank();
  into[0].tensor = at::empty({300, 17}, at::kInt);
  CHECK(kind(into) == ErrorKind::kDamaged);
}

TEST_CASE("equal states have equal tensor digests, and one bit makes another", "[store]") {
  const TempFolder folder;
  const auto first = save_checkpoint(folder.path() / "a", example(100));
  CHECK(save_checkpoint(folder.path() / "b", example(100)).tensors == first.tensors);
  auto changed = example(100);
  static_cast<std::uint32_t*>(changed.optim[1].tensor.mutable_data_ptr())[5] ^= 1;
  CHECK(save_checkpoint(folder.path() / "c", changed).tensors != first.tensors);
}

TEST_CASE("a step is not saved twice unless that is asked for", "[store]") {
  const TempFolder folder;
  const auto path = save_checkpoint(folder.path(), example(5, 1)).path;
  CHECK(kind_of_failure([&] { save_checkpoint(folder.path(), example(5, 2)); }) ==
        ErrorKind::kUsage);
  CHECK(same(read_checkpoint(path), example(5, 1)));
  save_checkpoint(folder.path(), example(5, 2), {.overwrite = true});
  CHECK(same(read_checkpoint(path), example(5, 2)));
  std::ofstream(path / "notes.txt") << "mine";
  CHECK(kind_of_failure([&] {
          save_checkpoint(folder.path(), example(5, 3), {.overwrite = true});
        }) == ErrorKind::kUsage);
  CHECK(same(read_checkpoint(path), example(5, 2)));
}

TEST_CASE("what cannot be stored is refused before the disk is touched", "[store]") {
  const TempFolder folder;
  const auto refused = [&](const std::function<void(CheckpointContents&)>& spoil) {
    auto contents = example();
    spoil(contents);
    const auto kind = kind_of_failure([&] { save_checkpoint(folder.path() / "run", contents); });
    return kind == ErrorKind::kFailure && !fs::exists(folder.path() / "run");
  };
  CHECK(refused([](auto& c) { (*c.trainer)["loss"] = std::numeric_limits<double>::quiet_NaN(); }));
  CHECK(refused([](auto& c) { c.trainer->erase("step"); }));
  CHECK(refused([](auto& c) { (*c.trainer)["step"] = -1; }));
  CHECK(refused([](auto& c) { (*c.config)["x"] = "\xff"; }));
  CHECK(refused([](auto& c) { c.config = Json::array(); }));
  CHECK(refused([](auto& c) { c.model[0].name = "a/b"; }));
  CHECK(refused([](auto& c) { c.model[0].name = ".."; }));
  CHECK(refused([](auto& c) { c.model[0].name = ""; }));
  CHECK(refused([](auto& c) { c.optim[0].name = "exp_avg"; }));
  CHECK(refused([](auto& c) { c.model[1].name = c.model[0].name; }));
  CHECK(refused([](auto& c) { c.model[0].tensor = c.model[0].tensor.t(); }));
  CHECK(refused([](auto& c) { c.model[0].tensor = at::zeros({2}, at::kHalf); }));
}

TEST_CASE("a save that fails leaves no trace and the older checkpoint whole", "[store]") {
  const TempFolder folder;
  const auto older = save_checkpoint(folder.path(), example(1));
  // The child may write 64 KiB to a file: as a full disk, without one.
  const pid_t child = olmo::test::fork_briefly();
  REQUIRE(child >= 0);
  if (child == 0) {
    const struct rlimit limit { 64 << 10, 64 << 10 };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string message;
    const bool refused = [&] {
      try {
        save_checkpoint(folder.path(), example(2, 1, 4000));
      } catch (const Error& error) {
        return error.kind() == ErrorKind::kFailure;
      }
      return false;
    }();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(!fs::exists(folder.path() / "step2"));
  CHECK(!fs::exists(folder.path() / "step2-tmp"));
  CHECK(same(read_checkpoint(older.path), example(1)));
  CHECK(fs::read_symlink(folder.path() / "latest") == "step1");
}

TEST_CASE("a folder that cannot be made is one clear error", "[store]") {
  const TempFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  std::string message;
  CHECK(kind_of_failure([&] { save_checkpoint(folder.path() / "file" / "run", example()); },
                        &message) == ErrorKind::kUsage);
  CHECK(message.find("cannot be made") != std::string::npos);
}

TEST_CASE("the manifest names its build, its time and each tensor's digest", "[store]") {
  const TempFolder folder;
  const auto contents = example();
  const CheckpointReader reader(save_checkpoint(folder.path(), contents).path);
  CHECK(reader.summary().at("git_revision") == build_info().git_revision);
  CHECK(reader.summary().at("run_id") == "run-Ω");
  CHECK(reader.summary().at("tokens_seen") == 18446744073709551615ULL);
  CHECK(reader.summary().at("created_utc").get<std::string>().size() == 27);
  const auto& first = reader.datasets().at(0);
  CHECK(first.path == "/model/transformer.wte.weight");
  const at::Tensor& tensor = contents.model[0].tensor;
  CHECK(first.sha256 == Sha256().update(tensor.const_data_ptr(), tensor.nbytes()).finish());
}

}  // namespace olmo::store::test
