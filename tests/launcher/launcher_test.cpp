// The launcher in a package whose program is a script that tells what it was given.
#include <unistd.h>

#include "launcher/fake_libtorch.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

class Package {
 public:
  explicit Package(const std::string& program) {
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "lib/olmo-harness");
    fs::copy_file(OLMO_LAUNCHER, launcher_);
    std::ofstream(program_) << "#!/bin/sh\n" << program;
    fs::permissions(program_, fs::perms::owner_all);
  }
  [[nodiscard]] fs::path libtorch() const { return folder_ / "torch"; }

  Ended run(const std::vector<std::pair<const char*, std::string>>& variables = {}) const {
    Child child({launcher_.string(), "train", "a word"}, folder_ / "output", std::nullopt, [&] {
      for (const char* name : {"LD_LIBRARY_PATH", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                               "OMP_WAIT_POLICY", "VIRTUAL_ENV", "CONDA_PREFIX"})
        ::unsetenv(name);
      ::setenv("OLMO_HARNESS_CACHE", (folder_ / "cache").c_str(), 1);
      ::setenv("OLMO_LIBTORCH", libtorch().c_str(), 1);
      for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
    });
    return child.wait();
  }

 private:
  TemporaryDirectory folder_;
  fs::path launcher_ = folder_ / "bin/olmo-harness",
           program_ = folder_ / "lib/olmo-harness/olmo-harness";
};

}  // namespace

TEST_CASE("a launcher becomes the program, which gets its words and gives its exit code",
          "[launcher]") {
  const Package package("echo \"$$ $# $2\"\nexit 75\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  const auto ended = package.run();
  CHECK(ended.code == 75);
  CHECK(ended.out.ends_with(" 2 a word\n"));
  CHECK(ended.err.empty());
}

TEST_CASE("a signal ends the program, and the caller sees it", "[launcher]") {
  const Package package("kill -TERM $$\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  CHECK(package.run().signal == SIGTERM);
}

TEST_CASE("the loader is told of LibTorch before the folders of the user", "[launcher]") {
  const Package package("echo \"$LD_LIBRARY_PATH $OLMO_HARNESS_LIBTORCH\"\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  const std::string lib = (package.libtorch() / "lib").string();
  CHECK(package.run().out == lib + " " + lib + "\n");
  CHECK(package.run({{"LD_LIBRARY_PATH", "/mine"}}).out == lib + ":/mine " + lib + "\n");
}

TEST_CASE("a launcher sets how threads wait unless the user has", "[launcher]") {
  const Package package("echo \"$GOMP_SPINCOUNT/$OMP_WAIT_POLICY\"\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  CHECK(package.run().out == "1000/\n");
  CHECK(package.run({{"OMP_WAIT_POLICY", "active"}}).out == "/active\n");
}

TEST_CASE("a launcher without LibTorch ends with one sentence and the code of wrong use",
          "[launcher]") {
  const Package package("");
  const auto ended = package.run({{"OLMO_LIBTORCH", ""}});
  CHECK(ended.code == 2);
  CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  CHECK(ended.err.find("/bin/olmo-harness-libtorch` fetches it") != std::string::npos);
}

TEST_CASE("a folder that the loader's variable cannot hold is refused", "[launcher]") {
  const Package package("");
  const auto odd = package.libtorch() / "a:b";
  fake_libtorch(odd, "2.11.0");
  const auto ended = package.run({{"OLMO_LIBTORCH", odd.string()}});
  CHECK(ended.code == 2);
  CHECK(ended.says("a folder with one of : ; $ in its name"));
}

}  // namespace olmo::test
