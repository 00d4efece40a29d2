#include "emulator.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

namespace olmo::gpu {
namespace {

constexpr std::size_t kStack = std::size_t{128} << 10, kMostThreads = 256;
constexpr int kLanes = 16;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "GPU emulator: %s\n", what);
  std::abort();
}

/// Threads that wait for each other.
struct Barrier {
  int arrived = 0;
  long generation = 0;
};

/// One block of threads. Its fibers go on from block to block and from kernel to kernel, since
/// starting one takes system calls.
class Block {
 public:
  explicit Block(int threads) : threads_(static_cast<std::size_t>(threads)) {
    if (threads_ > kMostThreads) fail("too many threads in a block");
    if (!std::has_single_bit(threads_)) fail("the threads of a block are no power of two");
    all_.resize(threads_);
    groups_.resize(threads_ / kLanes);
    for (auto& slots : slots_) slots.resize(threads_);
    shuffles_.resize(threads_);
    for (auto& fiber : all_) prepare(fiber);
  }

  void begin(Order order, const std::function<void()>& body) {
    body_ = &body;
    order_ = order;
  }

  void run(std::int64_t index) {
    index_ = index;
    finished_ = 0;
    for (auto& fiber : all_) fiber.done = false;
    choose_order();
    running = this;
    if (_setjmp(home_) == 0) turn_to(all_[current_]);
  }

  [[nodiscard]] int thread() const { return static_cast<int>(current_); }
  [[nodiscard]] std::int64_t index() const { return index_; }

  void wait_for_block() {
    if (finished_ > 0) fail("a thread has ended before the others synchronise");
    wait(block_, static_cast<int>(threads_));
  }
  void wait_for_group() { wait(groups_[current_ / kLanes], kLanes); }

  float exchange(float x, int lane) {
    auto& slots = slots_[shuffles_[current_]++ % 2];  // the next exchange must not overwrite this
    slots[current_] = x;
    const auto source = current_ / kLanes * kLanes + static_cast<std::size_t>(lane) % kLanes;
    wait_for_group();
    return slots[source];
  }

  static Block* running;

 private:
  struct Fiber {
    ucontext_t context;  ///< where it begins
    jmp_buf place;       ///< where it goes on: unlike a context, without system calls
    bool begun = false, done = false;
  };

  /// The first thread, and how far it is from one to the next: an odd step meets all of them, whose
  /// number is a power of two.
  void choose_order() {
    current_ = order_ == Order::kBackward ? threads_ - 1 : 0;
    step_ = order_ == Order::kBackward ? threads_ - 1 : 1;
    if (order_ != Order::kShuffled) return;
    const auto mixed = (static_cast<std::uint64_t>(index_) + 1) * 0x9E3779B97F4A7C15U;
    current_ = mixed >> 40U & (threads_ - 1);
    step_ = (mixed >> 50U & (threads_ - 1)) | 1U;
  }

  /// The same memory for every block: fresh pages are expensive.
  char* stack_of(const Fiber& fiber) {
    static const auto kStacks = std::make_unique_for_overwrite<char[]>(kMostThreads * kStack);
    return kStacks.get() + static_cast<std::size_t>(&fiber - all_.data()) * kStack;
  }

  void prepare(Fiber& fiber) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack_of(fiber);
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Block::enter, 0);
  }

  static void enter() {
    for (;;) {
      (*running->body_)();
      running->leave();
    }
  }

  /// Comes back in the next block.
  void leave() {
    Fiber& self = all_[current_];
    self.done = true;
    const bool last = ++finished_ == threads_;
    if (_setjmp(self.place) != 0) return;
    if (last) _longjmp(home_, 1);
    step();
    if (all_[current_].done) fail("no thread is left");
    turn_to(all_[current_]);
  }

  /// To the next thread that has not ended; stays where there is none.
  void step() {
    const auto from = current_;
    do {
      current_ = (current_ + step_) % threads_;
    } while (all_[current_].done && current_ != from);
  }

  void next() {
    const auto from = current_;
    step();
    if (current_ != from && _setjmp(all_[from].place) == 0) turn_to(all_[current_]);
  }

  [[noreturn]] static void turn_to(Fiber& fiber) {
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
    fail("a thread cannot be started");
  }

  void wait(Barrier& barrier, int count) {
    const long mine = barrier.generation;
    if (++barrier.arrived == count) {
      barrier.arrived = 0;
      ++barrier.generation;
      return;
    }
    for (long turns = 0; barrier.generation == mine; ++turns) {
      if (turns > 1000000) fail("threads wait for one that never comes");
      next();
    }
  }

  const std::function<void()>* body_ = nullptr;
  Order order_ = Order::kForward;
  std::size_t threads_, step_ = 1;
  std::int64_t index_ = 0;
  std::size_t current_ = 0, finished_ = 0;
  jmp_buf home_{};
  std::vector<Fiber> all_;
  Barrier block_;
  std::vector<Barrier> groups_;
  std::vector<float> slots_[2];
  std::vector<unsigned> shuffles_;
};

Block* Block::running = nullptr;

}  // namespace

void run_blocks(std::int64_t blocks, int threads, Order order,
                const std::function<void()>& thread) {
  static std::map<int, std::unique_ptr<Block>> known;  // the device works on one kernel at a time
  auto& block = known[threads];
  if (block == nullptr) block = std::make_unique<Block>(threads);
  block->begin(order, thread);
  for (std::int64_t i = 0; i < blocks; ++i)
    block->run(order == Order::kBackward ? blocks - 1 - i : i);
}

int thread_index() { return Block::running->thread(); }
std::int64_t block_index() { return Block::running->index(); }
void sync_block() { Block::running->wait_for_block(); }
void sync_group() { Block::running->wait_for_group(); }
float from_lane(float x, int lane) { return Block::running->exchange(x, lane); }

void require_aligned(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) fail("a misaligned address");
}

}  // namespace olmo::gpu
