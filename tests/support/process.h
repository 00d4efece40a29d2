#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

namespace olmo::test {

struct Finished {
  int code = -1;       ///< exit code, -1 if a signal ended it
  std::string output;  ///< what it wrote to stdout
};

/// Runs a shell command to its end.
inline Finished run(const std::string& command) {
  Finished finished;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return finished;
  std::array<char, 4096> buffer{};
  for (std::size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    finished.output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  return finished;
}

}  // namespace olmo::test
