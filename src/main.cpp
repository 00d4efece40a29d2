#include <cstdio>
#include <exception>

#include "cli/cli.h"
#include "core/error.h"
#include "core/process.h"

int main(int argc, char** argv) {
  olmo::open_standard_streams();
  olmo::keep_writes_from_killing();
  try {
    return olmo::cli::run(argc, argv);
  } catch (const olmo::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(olmo::ErrorKind::kFailure);
  }
}
