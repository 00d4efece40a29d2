#include "launcher/whole_program.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "core/error.h"
#include "core/process/process.h"
#include "launcher/find_libtorch.h"

namespace olmo::launcher {
namespace {

namespace fs = std::filesystem;

/// The loader learns of LibTorch's folder by LD_LIBRARY_PATH: it is the only means that leaves the
/// whole program an ordinary one, which is tested as it is shipped. The program takes the folder
/// out of its environment again (core/process/process.h).
void tell_loader(const fs::path& libraries) {
  if (libraries.string().find_first_of(":;$") != std::string::npos) {
    throw Error(ErrorKind::kUsage,
                "LibTorch is in " + libraries.string() +
                    ", but a folder with one of : ; $ in its name cannot be told the loader");
  }
  ::setenv(kLibtorchVariable, libraries.c_str(), 1);
  ::setenv("LD_LIBRARY_PATH", with_libtorch(std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
}

/// Below the folder of this program in a build, beside it where it is installed.
fs::path program_below(const fs::path& bin) {
  const fs::path place = fs::path("lib") / "olmo-harness" / "olmo-harness";
  return fs::exists(bin / place) ? bin / place : bin.parent_path() / place;
}

}  // namespace

void become_whole_program() {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path program = program_below(bin), fetcher = bin / "olmo-harness-libtorch";
  if (fs::exists(fetcher)) {  // a package's
    const auto libtorch =
        find_libtorch(places_of(bin.parent_path()), build_info().libtorch, fetcher.string());
    tell_loader(libtorch.libraries);
  }
  std::vector<std::string> words = command_words();
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  hold_signals();  // the program lets them act
  ::execv(program.c_str(), arguments.data());
  const int error = errno;
  throw Error(ErrorKind::kFailure,
              program.string() + ": cannot be started: " + std::strerror(error));
}

}  // namespace olmo::launcher
