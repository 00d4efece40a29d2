// The one emulated GPU that the stand-ins for CUDA's driver, HIP and LibTorch's GPU half share: its
// memory, its queue and its errors. The environment says how it behaves:
//   FAKE_GPUS         the number of devices (1)
//   FAKE_GPU_DRIVER   old: LibTorch finds no device
//   FAKE_GPU_CAPABILITY  of CUDA: 90 for 9.0
//   FAKE_DRIVER_VERSION  as the driver tells it: 12040 is CUDA's 12.4, 60032831 HIP's 6.0.32831
//   FAKE_GPU_MODE     now (or nothing): work runs when it is queued; reversed: so, the last block
//                     and thread of a kernel first; shuffled: so, the threads of each block in
//                     another order; delayed: when somebody waits for it, and the
//                     host cannot touch the pages of its memory; ahead: as delayed, but what is
//                     queued in other streams than the default one runs when it is queued
//   FAKE_GPU_MEMORY   its bytes (a TiB)
//   FAKE_GPU_FAIL     NAME:N, the N-th launch of that kernel fails, and all that follows
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define FAKE_SHARED __attribute__((visibility("default")))

namespace olmo::fake {

constexpr int kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kNotFound = 500,
              kLaunchFailure = 719;

FAKE_SHARED int devices();
/// As CUDA has it, each thread has a current device, or none yet, which then is the first for
/// LibTorch and no device at all for the driver. All threads of a process take the same one.
FAKE_SHARED void take_device(int number);
FAKE_SHARED bool has_device();
FAKE_SHARED int device_of_thread();
FAKE_SHARED const char* text_of(int code);

/// Memory of the device, which holds NaN; null where it has no more.
FAKE_SHARED void* allocate(std::size_t bytes);
/// For work that is queued from now on, the memory is free at once.
FAKE_SHARED void release(void* memory);
/// True for an address within memory that is allocated.
FAKE_SHARED bool owns(const void* address);

/// The most bytes that were asked for and in use at a time since begin_peak().
FAKE_SHARED std::size_t peak();
FAKE_SHARED void begin_peak();

/// Queues work that may use the device's memory, in a stream; 0 is the default one.
FAKE_SHARED void submit(std::function<void()> work, int stream = 0);
FAKE_SHARED int new_stream();
/// An event: that all which a stream has now is done.
FAKE_SHARED std::int64_t record(int stream);
/// What is queued in the stream from now on begins after the event.
FAKE_SHARED void block(int stream, std::int64_t event);
/// Queues a kernel.
FAKE_SHARED void submit(const std::string& kernel, unsigned blocks, unsigned threads,
                        std::function<void()> thread);
/// Runs what is queued in the default stream. The error of that or of what ran before: a device
/// that has failed stays so.
FAKE_SHARED int wait();
FAKE_SHARED void wait_for_all_streams();
/// The same where the host's program asks for it, which waits() counts.
FAKE_SHARED int wait_of_host();
FAKE_SHARED int waits();
/// From now on the device also runs what is queued when the host has queued nothing for a while: a
/// process that waits for another one may do so without waiting for its device.
FAKE_SHARED void go_on_alone();
/// The error that the host can know of without waiting.
FAKE_SHARED int known_error();
/// Waits for all that is queued, makes the memory of the device readable here and runs `work`.
FAKE_SHARED void with_memory(const std::function<void()>& work);
/// Forgets errors and counts of launches: the device as after a start of the process.
FAKE_SHARED void revive();

}  // namespace olmo::fake
