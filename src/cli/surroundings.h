// What the program reads of its surroundings and leaves there: exit codes, environment variables,
// files. The only tables of them; help, the man page and the documents' tests take them from here.
#pragma once

#include <span>
#include <string>

namespace olmo::cli {

struct ExitCode {
  int code;
  const char* meaning;
};

/// Of every command but `report parity`, whose codes are its verdicts.
std::span<const ExitCode> exit_codes();
/// "0 done, 1 a failure of the program, …".
std::string exit_codes_text();

struct EnvironmentVariable {
  const char* name;  ///< several that are read together: "RANK, WORLD_SIZE"
  const char* meaning;
};

/// Every variable that changes what the program does. Others of batch systems and libraries are
/// recorded with a run.
std::span<const EnvironmentVariable> environment_variables();

struct UsedFile {
  const char* path;
  const char* meaning;
};

std::span<const UsedFile> used_files();

}  // namespace olmo::cli
