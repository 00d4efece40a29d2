// Ranks as threads of one process: hundreds of them need no ports and no other machine.
#pragma once

#include <functional>

#include "dist/communicator.h"

namespace olmo::dist {

/// Runs `work` on `size` threads, each with its Communicator, and waits for all. If a rank throws,
/// the others' collectives throw, and the first error is thrown here.
void run_ranks(int size, const std::function<void(Communicator&)>& work);

}  // namespace olmo::dist
