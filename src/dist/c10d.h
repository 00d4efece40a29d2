// What the users of c10d, LibTorch's library of collectives, share. Its own headers take ten
// seconds to compile and stay in their .cpp files.
#pragma once

#include <exception>
#include <string>

namespace olmo::dist {

/// Keeps c10d from writing to stderr: what goes wrong is thrown, too, and said once by who handles
/// it. The variable TORCH_CPP_LOG_LEVEL brings its lines back. Called before its first use.
void silence_c10d();

/// What went wrong, on one line, without the places in LibTorch's source that its errors list.
std::string reason(const std::exception& error);

}  // namespace olmo::dist
