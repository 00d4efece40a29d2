// A shell with a completion script, in a folder with files to complete.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/said.h"
#include "support/catch.h"
#include "support/process.h"
#include "support/temporary_directory.h"

namespace olmo::test {

inline bool shell_is_installed(const std::string& shell) {
  if (run("command -v " + shell + " 2>/dev/null").code == 0) return true;
  WARN(shell + " is not installed: its completion is not tested");
  return false;
}

/// A folder with files to complete, and a shell's script.
class CompletionScene {
 public:
  explicit CompletionScene(const std::string& shell) : shell_(shell) {
    const auto said = say({"completion", shell});
    REQUIRE(said.code == 0);
    std::ofstream(folder_ / "script") << said.out;
    std::filesystem::create_directories(folder_ / "here/runs");
    for (const char* file : {"corpus.npy", "run.db", "mine.json", "notes.txt"})
      std::ofstream(folder_ / "here" / file) << "";
  }

  /// What a program of this shell prints; the script's path is its first argument.
  [[nodiscard]] std::string print(const std::string& program, const std::string& options = "") {
    std::ofstream(folder_ / "test") << program;
    const auto command = "cd '" + (folder_ / "here").string() + "' && HOME='" +
                         folder_.path().string() + "' timeout 100 " + shell_ + " " + options +
                         " ../test ../script 2>&1";
    const auto done = run(command);
    INFO(done.output);
    CHECK(done.code == 0);
    return done.output;
  }

 private:
  std::string shell_;
  TemporaryDirectory folder_;
};

using Candidates = std::map<std::string, std::vector<std::string>>;

/// Candidates "WHAT>CANDIDATE" by what was to be completed.
inline Candidates candidates_in(const std::string& output) {
  Candidates lines;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    const auto arrow = line.find('>');
    if (arrow != std::string::npos) lines[line.substr(0, arrow)].push_back(line.substr(arrow + 1));
  }
  return lines;
}

inline bool offers(const Candidates& lines, const std::string& what, const std::string& candidate) {
  const auto found = lines.find(what);
  if (found == lines.end()) return false;
  return std::ranges::find(found->second, candidate) != found->second.end();
}

}  // namespace olmo::test
