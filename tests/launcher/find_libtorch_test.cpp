#include "launcher/find_libtorch.h"

#include "core/error.h"
#include "launcher/fake_libtorch.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo::launcher {
namespace {

namespace fs = std::filesystem;

/// An installation with an environment of Python and a cache, as yet without any LibTorch.
struct Machine {
  test::TemporaryDirectory folder;
  fs::path environment = folder / "env", cache = folder / "cache", named = folder / "named";
  fs::path installed = environment / "lib/python3.12/site-packages/torch";
  fs::path fetched = cache / "libtorch-2.11.0/torch";

  [[nodiscard]] LibTorch find(const std::string& named_folder = "") const {
    return find_libtorch({named_folder, {environment}, cache}, "2.11.0", "BIN/fetch");
  }
  [[nodiscard]] std::string refusal(const std::string& named_folder = "") const {
    try {
      (void)find(named_folder);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      return error.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("the LibTorch that the user names comes before those that are found", "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.named, "2.11.0");
  test::fake_libtorch(machine.installed, "2.11.0");
  test::fake_libtorch(machine.fetched, "2.11.0");
  CHECK(machine.find(machine.named.string()).libraries == machine.named / "lib");
  CHECK(machine.find().libraries == machine.installed / "lib");
  fs::remove_all(machine.installed);
  CHECK(machine.find().libraries == machine.fetched / "lib");
}

TEST_CASE("the folder around torch/ names a LibTorch as well", "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.named / "torch", "2.11.1+rocm6.4");
  const auto found = machine.find(machine.named.string());
  CHECK(found.libraries == machine.named / "torch/lib");
  CHECK(found.version == "2.11.1+rocm6.4");
}

TEST_CASE("a PyTorch of another minor version is passed over, wherever Python keeps it",
          "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.installed, "2.1.1");
  test::fake_libtorch(machine.environment / "lib64/python3.9/dist-packages/torch", "2.110.0");
  test::fake_libtorch(machine.environment / "lib/python3.13/site-packages/torch", "2.11.0a0+git");
  CHECK(machine.find().version == "2.11.0a0+git");
}

TEST_CASE("a named LibTorch of another version is refused, even if a fitting one is there",
          "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.named, "2.9.1+cpu");
  test::fake_libtorch(machine.installed, "2.11.0");
  CHECK(machine.refusal(machine.named.string()) ==
        "OLMO_LIBTORCH: LibTorch 2.11 is needed, here is another: 2.9.1+cpu in " +
            machine.named.string());
}

TEST_CASE("a named folder without LibTorch is refused", "[launcher]") {
  const Machine machine;
  CHECK(machine.refusal("/nowhere") ==
        "OLMO_LIBTORCH: /nowhere has no lib/libtorch_cpu.so; the folder of a LibTorch 2.11 was "
        "expected");
}

TEST_CASE("without LibTorch there is one sentence with the command that fetches it",
          "[launcher]") {
  const Machine machine;
  CHECK(machine.refusal() ==
        "LibTorch 2.11 is needed and was not found: `BIN/fetch` fetches it (700 MB, once, into " +
            machine.cache.string() + ")");
  test::fake_libtorch(machine.installed, "2.9.1");
  CHECK(machine.refusal().find("not found (but 2.9.1 in " + machine.installed.string() +
                               "): `BIN/fetch`") != std::string::npos);
}

TEST_CASE("a LibTorch to which several names lead is told once", "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.installed, "2.9.1");
  fs::create_directory_symlink("lib", machine.environment / "lib64");  // as venv makes it
  const Places places{"", {machine.environment, machine.environment}, machine.cache};
  CHECK_THROWS_WITH(
      find_libtorch(places, "2.11.0", "BIN/fetch"),
      Catch::Matchers::Contains("not found (but 2.9.1 in " + machine.installed.string() + "): `"));
}

TEST_CASE("a folder in place of the library is no LibTorch", "[launcher]") {
  const Machine machine;
  fs::create_directories(machine.installed / "lib/libtorch_cpu.so");
  CHECK(machine.refusal().find("was not found: `BIN/fetch`") != std::string::npos);
}

TEST_CASE("a LibTorch that lacks libraries of its own is passed over, and named", "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.installed, "2.11.0");
  fs::copy_file(OLMO_FAKE_INCOMPLETE "/libtorch_cuda.so", machine.installed / "lib/libtorch_cpu.so",
                fs::copy_options::overwrite_existing);
  const auto refusal = machine.refusal();
  CHECK(refusal.find("(but 2.11.0 in " + machine.installed.string() + ", which lacks libolmo_") !=
        std::string::npos);
  CHECK(machine.refusal((machine.environment / "lib/python3.12/site-packages").string())
            .find("lacks what it needs: libolmo_") != std::string::npos);
  test::fake_libtorch(machine.fetched, "2.11.0");
  CHECK(machine.find().libraries == machine.fetched / "lib");
}

TEST_CASE("a LibTorch that is a cut copy is passed over, and named", "[launcher]") {
  const Machine machine;
  test::fake_libtorch(machine.installed, "2.11.0");
  const fs::path library = machine.installed / "lib/libtorch_cpu.so";
  fs::copy_file(OLMO_FAKE_CUDA "/libcuda.so.1", library, fs::copy_options::overwrite_existing);
  CHECK(machine.find().libraries == library.parent_path());
  fs::resize_file(library, fs::file_size(library) - 1);
  CHECK(machine.refusal().find("which lacks the end of libtorch_cpu.so: delete this cut copy)") !=
        std::string::npos);
}

TEST_CASE("a LibTorch without version.py tells its version by other files", "[launcher]") {
  const Machine machine;
  fs::create_directories(machine.named / "lib");
  std::ofstream(machine.named / "lib/libtorch_cpu.so") << "";
  CHECK(libtorch_in(machine.named)->version.empty());
  CHECK(machine.refusal(machine.named.string()).find("one of unknown version in") !=
        std::string::npos);
  fs::create_directories(machine.named / "include/torch/headeronly");
  std::ofstream(machine.named / "include/torch/headeronly/version.h")
      << "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n"
         "#define TORCH_VERSION_PATCH 3\n";
  CHECK(libtorch_in(machine.named)->version == "2.11.3");
  std::ofstream(machine.named / "build-version") << "2.11.1+cpu\n";
  CHECK(libtorch_in(machine.named)->version == "2.11.1+cpu");
}

TEST_CASE("the active environment of Python is looked into after the package's own",
          "[launcher]") {
  const test::Environment venv("VIRTUAL_ENV", "/venv"), conda("CONDA_PREFIX", "/conda");
  const test::Environment named("OLMO_LIBTORCH", "/x"), cache("OLMO_HARNESS_CACHE", "/cache");
  const auto places = places_of("/package");
  CHECK(places.named == "/x");
  CHECK(places.environments == std::vector<fs::path>{"/package", "/venv", "/conda"});
  CHECK(places.cache == "/cache");
}

}  // namespace olmo::launcher
