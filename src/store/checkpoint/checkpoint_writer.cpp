#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/compute/tensor.h"
#include "core/error.h"
#include "core/process/terminal.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/raw_file.h"

namespace olmo::store {
namespace {

constexpr std::size_t kChunk = 4U << 20U;  // of the parallel copy

using Clock = std::chrono::steady_clock;

/// Page-aligned memory that stays touched: fresh pages cost more than the copy itself (measured 1.5
/// against 20 GB/s).
class Arena {
 public:
  Arena() = default;
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// At least `bytes`, touched if new. What was there is lost.
  std::byte* get(std::size_t bytes) {
    if (bytes <= size_) return data_;
    release();
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw Error(ErrorKind::kFailure,
                  "checkpoint: no memory for a copy of " + std::to_string(bytes) + " bytes");
    }
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(memory);
    size_ = bytes;
    parallel_for(0, static_cast<std::int64_t>((bytes + kChunk - 1) / kChunk), 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   const auto first = static_cast<std::size_t>(begin) * kChunk;
                   std::memset(data_ + first, 0,
                               std::min(bytes, static_cast<std::size_t>(end) * kChunk) - first);
                 });
    return data_;
  }

 private:
  void release() {
    if (data_ != nullptr) ::munmap(data_, size_);
    data_ = nullptr;
    size_ = 0;
  }
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

std::size_t page_rounded(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::size_t arena_size(const CheckpointContents& contents) {
  std::size_t size = 0;
  for (const auto* tensors : {&contents.model, &contents.optim}) {
    for (const auto& entry : *tensors) size += page_rounded(entry.tensor.nbytes());
  }
  return size;
}

struct CopyPart {
  std::span<std::byte> to;
  const at::Tensor* from = nullptr;
  std::size_t begin = 0;  ///< byte of the tensor
};

/// Adds `tensors`' parts to `parts` and returns tensors of the same shapes over the copies, each on
/// a page of its own.
NamedTensors place(const NamedTensors& tensors, std::byte*& at, std::vector<CopyPart>& parts) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    for (std::size_t done = 0; done < tensor.nbytes(); done += kChunk)
      parts.push_back({{at + done, std::min(kChunk, tensor.nbytes() - done)}, &tensor, done});
    copies.push_back({name, at::from_blob(at, tensor.sizes(), tensor.scalar_type())});
    at += page_rounded(tensor.nbytes());
  }
  return copies;
}

bool lies_on_host(const CheckpointContents& contents) {
  const auto on_host = [](const NamedTensor& entry) { return entry.tensor.is_cpu(); };
  return std::ranges::all_of(contents.model, on_host) &&
         std::ranges::all_of(contents.optim, on_host);
}

CheckpointContents copy_contents(const CheckpointContents& contents, const Policy& policy,
                                 Arena& arena) {
  CheckpointContents copy{.kind = contents.kind,
                          .trainer = contents.trainer,
                          .config = contents.config,
                          .model = {},
                          .optim = {},
                          .optim_state = contents.optim_state,
                          .model_digests = contents.model_digests};
  std::byte* at = arena.get(arena_size(contents));
  std::vector<CopyPart> parts;
  copy.model = place(contents.model, at, parts);
  copy.optim = place(contents.optim, at, parts);
  parallel_for(
      0, static_cast<std::int64_t>(parts.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
          copy_to_host(policy, *parts[i].from, parts[i].begin, parts[i].to);
      });
  return copy;
}

}  // namespace

struct CheckpointWriter::State {
  State(Save how, Policy of_tensors) : save(std::move(how)), policy(std::move(of_tensors)) {}

  void run(const SaveOptions& options, double stall) {
    try {
      saved = save(snapshot, options);
      saved.stall_seconds = stall;
    } catch (...) {  // carried to wait()
      error = std::current_exception();
    }
    done = true;
  }

  CheckpointContents copy(const CheckpointContents& contents) {
    return copy_contents(contents, policy, arena);
  }

  Save save;
  Policy policy;
  Arena arena;
  CheckpointSnapshot snapshot;  // its tensors lie in the arena, or where training has them
  std::thread thread;
  bool in_flight = false;  // or waits for wait()
  std::atomic<bool> done{false};
  SavedCheckpoint saved;
  std::exception_ptr error;
};

CheckpointWriter::CheckpointWriter(Save save, const Policy& policy)
    : state_(std::make_unique<State>(std::move(save), policy)) {}

CheckpointWriter::CheckpointWriter(const std::filesystem::path& run_dir)
    : CheckpointWriter([run_dir](const CheckpointSnapshot& snapshot, const SaveOptions& options) {
        if (snapshot.missing) std::rethrow_exception(snapshot.missing);
        return save_checkpoint(run_dir, snapshot.contents, options);
      }) {}

CheckpointWriter::~CheckpointWriter() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_warning(std::string("the last checkpoint was not saved: ") + error.what());
  }
}

std::optional<SavedCheckpoint> CheckpointWriter::save_async(const CheckpointContents& contents,
                                                            const SaveOptions& options) {
  return save_async([&] { return contents; }, options);
}

std::optional<SavedCheckpoint> CheckpointWriter::save_async(
    const std::function<CheckpointContents()>& make, const SaveOptions& options) {
  return begin([&] { return state_->copy(make()); }, options);
}

std::optional<SavedCheckpoint> CheckpointWriter::save_beside(
    const std::function<CheckpointContents()>& make, const SaveOptions& options) {
  const auto on_host = [&] {
    CheckpointContents contents = make();
    return lies_on_host(contents) ? contents : state_->copy(contents);
  };
  return begin(on_host, options);
}

std::optional<SavedCheckpoint> CheckpointWriter::begin(
    const std::function<CheckpointContents()>& make, const SaveOptions& options) {
  const auto start = Clock::now();
  auto previous = wait();
  State& state = *state_;
  state.snapshot = {};
  try {
    state.snapshot.contents = make();
  } catch (...) {  // the save's to tell
    state.snapshot.missing = std::current_exception();
  }
  state.done = false;
  state.in_flight = true;
  const double stall = seconds_since(start);
  try {
    state.thread = std::thread([&state, options, stall] { state.run(options, stall); });
  } catch (const std::system_error&) {  // no thread: other ranks may be waiting all the same
    state.snapshot.missing = std::current_exception();
    state.run(options, stall);
  }
  return previous;
}

std::optional<SavedCheckpoint> CheckpointWriter::wait() {
  State& state = *state_;
  if (!state.in_flight) return std::nullopt;
  if (state.thread.joinable()) state.thread.join();
  state.in_flight = false;
  state.snapshot = {};
  if (state.error) std::rethrow_exception(std::exchange(state.error, nullptr));
  return state.saved;
}

bool CheckpointWriter::finished() const { return state_->in_flight && state_->done; }

}  // namespace olmo::store
