#include "device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "emulator.h"
#include <sys/mman.h>
#include <unistd.h>

namespace olmo::fake {
namespace {

constexpr std::size_t kArena = std::size_t{1} << 36;

struct State {
  std::recursive_mutex mutex;
  char* arena = nullptr;
  std::size_t used = 0;  ///< of the arena, from its start
  std::size_t live = 0;
  std::size_t asked = 0, peak = 0;  ///< of that, without what fills pages up
  int waits = 0;
  struct Block {
    std::size_t bytes, asked;
  };
  std::map<char*, Block> allocated;
  std::multimap<std::size_t, char*> free;
  std::vector<std::deque<std::function<void()>>> streams{1};
  std::vector<int> events;        ///< the stream of each
  std::set<std::int64_t> passed;  ///< of them
  std::int64_t queued = 0;        ///< ever
  std::map<std::string, int> launches;
  int error = 0;
  int open = 0;  ///< pieces of work that run, one within the other
  bool readable = false;
};

State& state() {
  static auto* const kState = new State;  // outlives whatever frees memory at the end
  return *kState;
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_ahead() { return variable("FAKE_GPU_MODE") == "ahead"; }
bool is_delayed() { return variable("FAKE_GPU_MODE") == "delayed" || is_ahead(); }

/// The memory of the device, for as long as an object lives. Only a delayed device takes it away
/// again: the system's call takes time for every page.
class Opened {
 public:
  Opened() {
    if (state().open++ == 0) allow(true);
  }
  ~Opened() {
    if (--state().open == 0 && is_delayed()) allow(false);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  static void allow(bool readable) {
    State& s = state();
    if (s.readable == readable) return;
    s.readable = readable;
    if (s.used == 0) return;
    if (::mprotect(s.arena, s.used, readable ? PROT_READ | PROT_WRITE : PROT_NONE) == 0) return;
    std::perror("GPU emulator: mprotect");
    std::abort();
  }
};

/// Runs what a stream has, until it is empty or an event has passed.
void drain(std::size_t stream, std::int64_t until = -1) {
  const auto is_over = [&] {
    return state().streams[stream].empty() || state().passed.contains(until);
  };
  if (is_over()) return;
  const Opened opened;
  while (!is_over()) {
    auto& queue = state().streams[stream];
    const auto work = std::move(queue.front());
    queue.pop_front();
    work();
  }
}

gpu::Order order_of_threads() {
  const auto mode = variable("FAKE_GPU_MODE");
  if (mode == "reversed") return gpu::Order::kBackward;
  return mode == "shuffled" ? gpu::Order::kShuffled : gpu::Order::kForward;
}

void run_kernel(const std::string& name, unsigned blocks, unsigned threads,
                const std::function<void()>& thread) {
  State& s = state();
  const auto wanted = variable("FAKE_GPU_FAIL");
  const int count = ++s.launches[name];
  if (wanted == name + ":" + std::to_string(count)) {
    s.error = kLaunchFailure;
    return;
  }
  gpu::run_blocks(blocks, static_cast<int>(threads), order_of_threads(), thread);
}

std::size_t capacity() {
  const auto wanted = variable("FAKE_GPU_MEMORY");
  return wanted.empty() ? std::size_t{1} << 40 : std::stoull(std::string(wanted));
}

/// A block that was freed, or a new one; null where neither fits.
char* take(std::size_t bytes) {
  State& s = state();
  if (const auto found = s.free.lower_bound(bytes);
      found != s.free.end() && found->first <= 2 * bytes) {
    char* memory = found->second;
    s.allocated[memory] = {found->first, 0};
    s.free.erase(found);
    return memory;
  }
  if (s.arena == nullptr) {
    void* arena =
        ::mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) return nullptr;
    s.arena = static_cast<char*>(arena);
  }
  if (bytes > kArena - s.used) return nullptr;
  char* memory = s.arena + s.used;
  if (s.readable) ::mprotect(memory, bytes, PROT_READ | PROT_WRITE);
  s.used += bytes;
  s.allocated[memory] = {bytes, 0};
  return memory;
}

}  // namespace

int devices() {
  const auto wanted = variable("FAKE_GPUS");
  return wanted.empty() ? 1 : std::stoi(std::string(wanted));
}

namespace {
constexpr int kNone = -1;
thread_local int of_thread = kNone;
std::atomic<int> of_process = kNone;
std::atomic<pid_t> process = 0;

/// Tests fork their ranks, each of which has a device of its own.
void forget_parent() {
  if (process.exchange(::getpid()) == ::getpid()) return;
  of_process = kNone;
  of_thread = kNone;
}
}  // namespace

void take_device(int number) {
  forget_parent();
  int known = kNone;
  if (!of_process.compare_exchange_strong(known, number) && known != number) {
    std::fprintf(stderr, "GPU emulator: a thread takes GPU %d, the process has GPU %d\n", number,
                 known);
    std::abort();
  }
  of_thread = number;
}

bool has_device() {
  forget_parent();
  return of_thread != kNone;
}

int device_of_thread() { return has_device() ? of_thread : 0; }

const char* text_of(int code) {
  switch (code) {
    case kInvalid:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kNotFound:
      return "named symbol not found";
    case kLaunchFailure:
      return "unspecified launch failure";
    default:
      return "no error";
  }
}

void* allocate(std::size_t bytes) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  if (bytes > capacity() || s.live + bytes > capacity()) return nullptr;
  // Whole pages: mprotect knows no less.
  char* memory = take((bytes + 4095) / 4096 * 4096);
  if (memory == nullptr) return nullptr;
  State::Block& block = s.allocated[memory];
  const std::size_t whole = block.bytes;
  block.asked = bytes;
  s.live += whole;
  s.asked += bytes;
  s.peak = std::max(s.peak, s.asked);
  submit([memory, whole] { std::memset(memory, 0xFF, whole); });  // what nobody wrote shows
  return memory;
}

void release(void* memory) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto found = s.allocated.find(static_cast<char*>(memory));
  if (found == s.allocated.end()) {
    std::fprintf(stderr, "GPU emulator: memory is freed that was not allocated\n");
    std::abort();
  }
  s.live -= found->second.bytes;
  s.asked -= found->second.asked;
  s.free.emplace(found->second.bytes, found->first);
  s.allocated.erase(found);
}

bool owns(const void* address) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  auto* const at = static_cast<char*>(const_cast<void*>(address));
  auto found = s.allocated.upper_bound(at);
  if (found == s.allocated.begin()) return false;
  --found;
  return at < found->first + found->second.bytes;
}

void submit(std::function<void()> work, int stream) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto number = static_cast<std::size_t>(stream);
  s.streams.at(number).push_back([work = std::move(work)] {
    if (state().error == 0) work();
  });
  ++s.queued;
  if (!is_delayed() || (is_ahead() && stream != 0)) drain(number);
}

int new_stream() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.streams.emplace_back();
  return static_cast<int>(s.streams.size()) - 1;
}

std::int64_t record(int stream) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto event = static_cast<std::int64_t>(s.events.size());
  s.events.push_back(stream);
  s.streams.at(static_cast<std::size_t>(stream)).push_back([event] {
    state().passed.insert(event);
  });
  return event;
}

void block(int stream, std::int64_t event) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto of = static_cast<std::size_t>(s.events.at(static_cast<std::size_t>(event)));
  s.streams.at(static_cast<std::size_t>(stream)).push_back([of, event] { drain(of, event); });
}

void submit(const std::string& kernel, unsigned blocks, unsigned threads,
            std::function<void()> thread) {
  submit([=, thread = std::move(thread)] { run_kernel(kernel, blocks, threads, thread); });
}

int wait() {
  const std::scoped_lock lock(state().mutex);
  drain(0);
  return state().error;
}

void wait_for_all_streams() {
  const std::scoped_lock lock(state().mutex);
  for (std::size_t stream = 0; stream < state().streams.size(); ++stream) drain(stream);
}

int wait_of_host() {
  const std::scoped_lock lock(state().mutex);
  ++state().waits;
  return wait();
}

int waits() {
  const std::scoped_lock lock(state().mutex);
  return state().waits;
}

std::size_t peak() {
  const std::scoped_lock lock(state().mutex);
  return state().peak;
}

void begin_peak() {
  const std::scoped_lock lock(state().mutex);
  state().peak = state().asked;
}

void go_on_alone() {
  static const bool kBegun = [] {
    std::thread([] {
      for (std::int64_t before = -1;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const std::scoped_lock lock(state().mutex);
        if (std::exchange(before, state().queued) == state().queued) wait_for_all_streams();
      }
    }).detach();
    return true;
  }();
  static_cast<void>(kBegun);
}

int known_error() {
  const std::scoped_lock lock(state().mutex);
  return state().error;
}

void with_memory(const std::function<void()>& work) {
  const std::scoped_lock lock(state().mutex);
  drain(0);
  const Opened opened;
  work();
}

void revive() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  for (auto& stream : s.streams) stream.clear();
  s.launches.clear();
  s.error = 0;
}

}  // namespace olmo::fake
