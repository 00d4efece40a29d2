#include "core/compute/gpu.h"

#include <array>
#include <cstring>

#include <ATen/Context.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/error.h"
#include "core/memory_error.h"

namespace olmo {
namespace {

constexpr int kComputeMajor = 75, kComputeMinor = 76;  // CUdevice_attribute

template <class Stream>
constexpr bool tells_handle() {
  return requires(const Stream& stream) { stream.native_handle(); };
}
constexpr bool kTellsHandles = tells_handle<c10::Stream>();

/// What the driver calls a stream of LibTorch's. The default one has no name. Of others LibTorch
/// does not tell before 2.11.
template <class Stream>
GpuStream native_handle(const Stream& stream) {
  if (stream.id() == 0) return nullptr;
  if constexpr (tells_handle<Stream>()) {
    return stream.native_handle();
  } else {
    OLMO_CHECK(false);
    return nullptr;
  }
}

c10::impl::VirtualGuardImpl libtorch() { return c10::impl::VirtualGuardImpl(at::kCUDA); }

template <class Work>
auto as_errors_of(const Gpu& gpu, const Work& work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    gpu.fail(error.what_without_backtrace());
  }
}

}  // namespace

std::shared_ptr<Gpu> Gpu::open(Device device, const std::string& folder, const LocalRank& local) {
  return std::shared_ptr<Gpu>(new Gpu(device, folder, local));
}

Gpu::Gpu(Device device, const std::string& folder, const LocalRank& local)
    : device_(device), driver_(open_gpu_driver(device, folder)), folder_(folder) {
  choose(local);
  describe();
  if (device == Device::kCuda) open_cuda_context();
  open_torch();
  compiler_ = open_gpu_compiler(device, folder);  // LibTorch's half may have brought it along
  if (device == Device::kCuda) architecture_ = cuda_architecture(compiler_, capability());
  compiler_name_ = compiler_.name + (device == Device::kCuda ? ", " + architecture_
                                                             : " of HIP " + driver_.version_text());
  use();
}

void Gpu::describe() {
  std::array<char, 256> text{};
  const int room = static_cast<int>(text.size()) - 1;
  require(driver_.name(text.data(), room, of_driver_), "it has no name");
  name_ = text.data();
  require(driver_.bus(text.data(), room, of_driver_), "it has no address");
  bus_ = text.data();
}

void Gpu::open_torch() {
  open_torch_half(device_, folder_);
  if (!at::hasCUDA()) {
    throw Error(ErrorKind::kUsage,
                "`device` is " + to_string(device_) + ", but LibTorch finds no GPU, though the " +
                    "driver shows " + name_ +
                    ": usually the driver is older than those that this LibTorch was built for. "
                    "Take a newer driver, or a LibTorch for this one");
  }
  as_errors_of(*this, [&] { libtorch().setDevice(memory()); });
}

void Gpu::choose(const LocalRank& local) {
  int count = 0;
  const std::string but = "`device` is " + to_string(device_) + ", but ";
  if (const std::string problem = driver_.problem(&count); !problem.empty()) {
    throw Error(ErrorKind::kUsage,
                but + problem + ": " + no_gpu_remedy(device_) + ", or take device=cpu");
  }
  if (count > 1 && local.rank >= count) {
    throw Error(ErrorKind::kUsage, but + "the driver shows " + std::to_string(count) +
                                       " GPUs to each of " + std::to_string(local.size) +
                                       " ranks of this machine: expected one for each rank");
  }
  number_ = of_driver_ = count == 1 ? 0 : local.rank;
  if (driver_.device != nullptr)
    require(driver_.device(&of_driver_, number_), "the driver does not give it");
}

void Gpu::require(int code, const std::string& what) const {
  if (code == 0) return;
  throw Error(ErrorKind::kUsage, "`device` is " + to_string(device_) + ", but " + what + ": " +
                                     driver_.describe(code));
}

// The primary context: LibTorch's runtime has the same, and would say less if it cannot be made.
void Gpu::open_cuda_context() {
  require(driver_.retain_context(&context_, of_driver_), "it cannot be used");
}

int Gpu::capability() const {
  int major = 0, minor = 0;
  for (const auto& [number, value] : {std::pair(kComputeMajor, &major), {kComputeMinor, &minor}})
    require(driver_.attribute(value, number, of_driver_), "the driver does not describe it");
  return 10 * major + minor;
}

Gpu::~Gpu() {
  // What fails now cannot be helped. Copies may still read the staging memory, kernels be queued.
  if (device_ == Device::kCuda ? driver_.use_context(context_) == 0
                               : driver_.use_device(number_) == 0)
    driver_.wait(stream());
  if (staging_ != nullptr) driver_.release_pinned(staging_);
  if (module_ != nullptr) driver_.unload_module(module_);
  if (context_ != nullptr) driver_.release_context(of_driver_);
}

GpuStream Gpu::stream() const { return native_handle(libtorch().getStream(memory())); }

void Gpu::check(int code, const std::string& what) const {
  if (code != 0) fail(what + ": " + driver_.describe(code));
}

void Gpu::use() const {
  check(device_ == Device::kCuda ? driver_.use_context(context_) : driver_.use_device(number_),
        "it cannot be used from this thread");
}

/// Kept code that the driver refuses, as after another one was installed, is compiled again.
void Gpu::load(const GpuProgram& program) {
  const auto kept = KeptGpuCode::of_user();
  const auto key = gpu_code_key(device_, program, architecture_, compiler_name_ + " for " + name_);
  if (const auto code = kept.find(key);
      code && driver_.load_module(&module_, code->data()) == 0 && module_ != nullptr)
    return;
  const auto code = compile_gpu_program(device_, compiler_, program, architecture_);
  const auto newer = newer_than_driver(compiler_, driver_);
  check(driver_.load_module(&module_, code.data()),
        "the compiled kernels cannot be loaded" + (newer.empty() ? "" : " (" + newer + ")"));
  kept.keep(key, code);
}

void* Gpu::find(const char* kernel) {
  void*& found = kernels_[kernel];
  if (found == nullptr)
    check(driver_.find_kernel(&found, module_, kernel), std::string(kernel) + " is missing");
  return found;
}

void Gpu::launch(GpuStream stream, const GpuProgram& program, const char* kernel,
                 std::string_view operation, std::int64_t blocks, void** arguments) {
  constexpr std::int64_t kMostBlocks = 0x7FFFFFFF;
  OLMO_CHECK(blocks >= 0 && blocks <= kMostBlocks);
  if (blocks == 0) return;
  const std::scoped_lock lock(mutex_);
  use();
  if (module_ == nullptr) load(program);
  const int code = driver_.launch(find(kernel), static_cast<unsigned>(blocks), 1, 1, kBlock, 1, 1,
                                  0, stream, arguments, nullptr);
  check(code, std::string(kernel) + " cannot be started");
  last_kernel_ = kernel;
  if (!operation.empty()) last_kernel_ += " of " + std::string(operation);
  ++launched_;
}

/// Ends a message with the work that the host has not waited for: the error may be of any of it.
std::string Gpu::suspects() const {
  if (launched_ == 0) return "";
  std::string last = "; launched last: " + last_kernel_;
  if (launched_ == 1) return last;
  return last + ", after " + std::to_string(launched_ - 1) +
         (launched_ == 2 ? " other that" : " others that") + " had not been waited for either";
}

void Gpu::wait_for(GpuStream stream) {
  check(driver_.wait(stream), "a kernel or copy failed");
  launched_ = 0;
  staged_ = 0;
  for (const auto& [owner, check_work] : after_waits_) check_work();
}

void Gpu::wait() {
  const std::scoped_lock lock(mutex_);
  use();
  wait_for(stream());
}

void Gpu::after_waits(const void* owner, std::function<void()> check) {
  const std::scoped_lock lock(mutex_);
  if (check) {
    after_waits_[owner] = std::move(check);
  } else {
    after_waits_.erase(owner);
  }
}

std::byte* Gpu::stage(std::size_t bytes, GpuStream stream) {
  if (staging_ == nullptr) {
    void* memory = nullptr;
    check(driver_.allocate_pinned(&memory, kStaging, 0), "the host's memory cannot be pinned");
    staging_ = static_cast<std::byte*>(memory);
  }
  if (bytes > kStaging - staged_) wait_for(stream);
  std::byte* const place = staging_ + staged_;
  staged_ += bytes;
  return place;
}

void Gpu::copy_to_device(void* to, const void* from, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  use();
  const GpuStream queue = stream();
  for (std::size_t done = 0; done < bytes;) {
    const auto part = std::min(bytes - done, kStaging);
    std::byte* const staged = stage(part, queue);
    std::memcpy(staged, static_cast<const std::byte*>(from) + done, part);
    check(driver_.start_copy_to_device(static_cast<std::byte*>(to) + done, staged, part, queue),
          "a copy to it cannot be started");
    done += part;
  }
}

void Gpu::copy_to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::scoped_lock lock(mutex_);
  use();
  const GpuStream queue = stream();
  check(driver_.start_copy_to_host(to, from, bytes, queue), "a copy from it cannot be started");
  wait_for(queue);
}

void Gpu::fail(const std::string& problem) const {
  throw Error(ErrorKind::kFailure,
              "device " + name_ + ": " + problem.substr(0, problem.find('\n')) + suspects());
}

GpuSideQueue::GpuSideQueue(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  if constexpr (kTellsHandles) {
    as_errors_of(*gpu_, [&] {
      own_ = libtorch().getStreamFromGlobalPool(gpu_->memory(), /*isHighPriority=*/true);
    });
  }
}

GpuStream GpuSideQueue::begin() {
  if (!own_) return gpu_->stream();
  return as_errors_of(*gpu_, [&] {
    c10::Event now(at::kCUDA);
    now.record(libtorch().getStream(gpu_->memory()));
    now.block(*own_);
    return native_handle(*own_);
  });
}

std::function<void()> GpuSideQueue::end() {
  if (!own_) return [] {};
  const auto done = std::make_shared<c10::Event>(at::kCUDA);
  as_errors_of(*gpu_, [&] { done->record(*own_); });
  return [done, gpu = gpu_] {
    as_errors_of(*gpu, [&] { done->block(libtorch().getStream(gpu->memory())); });
  };
}

void throw_as_ours(const Policy& policy, const c10::Error& error) {
  const std::string whole = error.what_without_backtrace();
  const std::string problem = whole.substr(0, whole.find('\n'));
  const bool of_host = problem.find("can't allocate memory") != std::string::npos;
  if (of_host || dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr)
    throw MemoryError("there is no memory left: " + memory_problem(problem));
  if (policy.gpu != nullptr) policy.gpu->fail(problem);
  throw Error(ErrorKind::kFailure, problem);
}

}  // namespace olmo
