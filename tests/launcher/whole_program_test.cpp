// The program without LibTorch, in a package whose whole program is a script that tells what it was
// given.
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
    fs::copy_file(OLMO_FRONT, front_);
    const std::ofstream fetcher(folder_ / "bin/olmo-harness-libtorch");
    std::ofstream(program_) << "#!/bin/sh\n" << program;
    fs::permissions(program_, fs::perms::owner_all);
  }
  [[nodiscard]] fs::path libtorch() const { return folder_ / "torch"; }

  Ended run(const std::vector<std::pair<const char*, std::string>>& variables = {}) const {
    Child child({front_.string(), "doctor", "--json"}, folder_ / "output", std::nullopt, [&] {
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
  fs::path front_ = folder_ / "bin/olmo-harness",
           program_ = folder_ / "lib/olmo-harness/olmo-harness";
};

}  // namespace

TEST_CASE(
    "a command that computes becomes the whole program, which gets its words and gives its exit "
    "code",
    "[launcher]") {
  const Package package("echo \"$$ $# $2\"\nexit 75\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  const auto ended = package.run();
  CHECK(ended.code == 75);
  CHECK(ended.out.ends_with(" 2 --json\n"));
  CHECK(ended.err.empty());
}

TEST_CASE("a signal ends the program, and the caller sees it", "[launcher]") {
  const Package package("kill -KILL $$\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  CHECK(package.run().signal == SIGKILL);
}

TEST_CASE("signals that ask for a stop are held until the whole program can see them",
          "[launcher]") {
  // By the shell itself: it lets signals act in what it starts.
  const Package package(
      "while read -r name value; do [ $name != SigBlk: ] || echo $value; done "
      "</proc/$$/status\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  const auto held = std::stoull(package.run().out, nullptr, 16);
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) CHECK((held >> (number - 1) & 1) == 1);
}

TEST_CASE("the loader is told of LibTorch before the folders of the user", "[launcher]") {
  const Package package("echo \"$LD_LIBRARY_PATH $OLMO_HARNESS_LIBTORCH\"\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  const std::string lib = (package.libtorch() / "lib").string();
  CHECK(package.run().out == lib + " " + lib + "\n");
  CHECK(package.run({{"LD_LIBRARY_PATH", "/mine"}}).out == lib + ":/mine " + lib + "\n");
}

TEST_CASE("the whole program is told how threads wait unless the user has said it", "[launcher]") {
  const Package package("echo \"$GOMP_SPINCOUNT/$OMP_WAIT_POLICY\"\n");
  fake_libtorch(package.libtorch(), "2.11.0");
  CHECK(package.run().out == "1000/\n");
  CHECK(package.run({{"OMP_WAIT_POLICY", "active"}}).out == "/active\n");
}

TEST_CASE(
    "without LibTorch a command that computes ends with one sentence and the code of wrong use",
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

TEST_CASE("what computes nothing is done without LibTorch and without the whole program",
          "[launcher]") {
  const TemporaryDirectory folder;
  fs::copy_file(OLMO_FRONT, folder / "olmo-harness");
  for (const std::string words : {"--version", "--help", "runs list ."}) {
    CAPTURE(words);
    const std::string line = "cd " + folder.path().string() + " && ./olmo-harness " + words;
    const auto ended = Child({"/bin/sh", "-c", line}, folder / "output").wait();
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
}

TEST_CASE("the program that a user starts has no LibTorch among its libraries", "[launcher]") {
  const TemporaryDirectory folder;
  const auto ended = Child({OLMO_FRONT}, folder / "output", std::nullopt, [] {
                       ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);  // the loader lists them
                     }).wait();
  CHECK(ended.out.find("libstdc++") != std::string::npos);
  CHECK(ended.out.find("torch") == std::string::npos);
}

TEST_CASE("a program that is not where it should be is named", "[launcher]") {
  const TemporaryDirectory folder;
  fs::copy_file(OLMO_FRONT, folder / "olmo-harness");
  const auto ended =
      Child({(folder / "olmo-harness").string(), "doctor"}, folder / "output").wait();
  CHECK(ended.code == 1);
  CHECK(ended.says("lib/olmo-harness/olmo-harness: cannot be started"));
}

}  // namespace olmo::test
