// Ranks that exchange what lies in the memory of their GPUs: NVIDIA's NCCL, AMD's RCCL.
#pragma once

#include <memory>

#include "core/compute/gpu.h"
#include "dist/communicator.h"

namespace olmo::dist {

/// Throws Error(kUsage) on all ranks of `host` alike if two have the same GPU. Collective.
void require_own_gpus(Communicator& host, const Gpu& gpu);

/// The ranks of `host`, which must outlive it, for tensors in the memory of `gpu`. Collective.
/// Throws Error(kUsage) on all ranks alike if one lacks the library, or two have the same GPU.
///
/// Collectives have a queue of their own, in which the device does them beside LibTorch's current
/// stream. One begins when all that was in that stream before is done. Pending::wait() does not
/// hold up the host: what is queued in the stream afterwards begins when the collective is done. So
/// the time that a device waits for other ranks is counted where the host waits for the device.
/// Barriers, and how parts of the ranks meet, are the business of `host`.
///
/// The library's calls, and kernels that wait for another rank, may wait for ever. A thread asks
/// the lookout of `host` and the library itself for failures. After one it ends what waits (by
/// ncclCommAbort), and the failure is thrown by the next collective, or where the host has waited
/// for the device, whichever comes first.
std::unique_ptr<Communicator> join_gpus(Communicator& host, std::shared_ptr<Gpu> gpu);

}  // namespace olmo::dist
