// What the users of c10d, LibTorch's library of collectives, share. Its own headers take ten
// seconds to compile and stay in their .cpp files.
#pragma once

#include <exception>
#include <string>

namespace olmo::dist {

/// Called before each use of c10d that may be the first of this process.
///
/// It shall write nothing to stderr: what goes wrong is thrown, too, and said once by who handles
/// it. The variable TORCH_CPP_LOG_LEVEL brings its lines back. And its flight recorder is off: it
/// keeps a table for all groups of a process that has no lock, so that two groups which two threads
/// use (a save in the background, beside training) end the process sooner or later.
void prepare_c10d();

/// What went wrong, on one line, without the places in LibTorch's source that its errors list.
std::string reason(const std::exception& error);

}  // namespace olmo::dist
