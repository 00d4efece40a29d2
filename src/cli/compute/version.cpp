#include "cli/compute/compute.h"
#include "core/compute/libtorch.h"

namespace olmo::cli::compute {

bool is_whole() { return true; }

std::optional<std::string> libtorch() { return libtorch_version(); }

}  // namespace olmo::cli::compute
