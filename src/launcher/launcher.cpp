// bin/olmo-harness of a package (scripts/package.sh): finds LibTorch, then becomes the program,
// lib/olmo-harness/olmo-harness, so that process, signals and exit code are the program's. The
// loader learns of LibTorch's folder by LD_LIBRARY_PATH: it is the only means that leaves the
// program an ordinary one, which is tested as it is shipped, and which /proc/self/exe names. The
// program takes the folder out of its environment again (core/process/process.h).
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "wait_policy.h"
#include <unistd.h>

#include "core/error.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "launcher/find_libtorch.h"

namespace {

namespace fs = std::filesystem;

void tell_loader(const fs::path& libraries) {
  if (libraries.string().find_first_of(":;$") != std::string::npos) {
    throw olmo::Error(olmo::ErrorKind::kUsage,
                      "LibTorch is in " + libraries.string() +
                          ", but a folder with one of : ; $ in its name cannot be told the loader");
  }
  ::setenv(olmo::kLibtorchVariable, libraries.c_str(), 1);
  ::setenv("LD_LIBRARY_PATH", olmo::with_libtorch(std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
}

/// Saves the program a second start (wait_policy.cpp).
void set_short_waits() {
  for (const char* name : olmo::kWaitVariables)
    if (std::getenv(name) != nullptr) return;
  for (const char* setting : {olmo::kWaitOfGcc, olmo::kWaitOfClang})
    ::putenv(const_cast<char*>(setting));
}

void launch(char** arguments) {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path program = bin.parent_path() / "lib" / "olmo-harness" / "olmo-harness";
  const auto libtorch =
      olmo::launcher::find_libtorch(olmo::launcher::places_of(bin.parent_path()),
                                    OLMO_TORCH_VERSION, (bin / "olmo-harness-libtorch").string());
  tell_loader(libtorch.libraries);
  set_short_waits();
  ::execv(program.c_str(), arguments);
  throw olmo::Error(olmo::ErrorKind::kFailure,
                    program.string() + ": cannot be started: " + std::strerror(errno));
}

}  // namespace

int main(int /*argc*/, char** argv) {
  olmo::open_standard_streams();
  try {
    launch(argv);
  } catch (const olmo::Error& error) {
    olmo::log_line("error: " + olmo::safe_line(error.what()));
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    olmo::log_line("error: " + olmo::safe_line(error.what()));
  }
  return static_cast<int>(olmo::ErrorKind::kFailure);
}
