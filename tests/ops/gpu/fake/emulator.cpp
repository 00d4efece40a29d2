#include "emulator.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <ucontext.h>

namespace olmo::gpu {
namespace {

constexpr std::size_t kStack = std::size_t{128} << 10;
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

/// One block of threads.
class Block {
 public:
  Block(int threads, bool reverse, const std::function<void()>& body)
      : body_(body), threads_(static_cast<std::size_t>(threads)), step_(reverse ? threads - 1 : 1) {
    for (auto& fiber : fibers_()) fiber.stack = std::make_unique<char[]>(kStack);
    groups_.resize(threads_ / kLanes);
    for (auto& slots : slots_) slots.resize(threads_);
    shuffles_.resize(threads_);
  }

  void run(std::int64_t index) {
    index_ = index;
    finished_ = 0;
    for (auto& fiber : all_) {
      fiber.done = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, &Block::enter, 0);
    }
    current_ = step_ == 1 ? 0 : threads_ - 1;
    running = this;
    swapcontext(&home_, &all_[current_].context);
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
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
  };

  std::vector<Fiber>& fibers_() {
    all_.resize(threads_);
    return all_;
  }

  static void enter() {
    running->body_();
    running->leave();
  }

  void leave() {
    all_[current_].done = true;
    if (++finished_ == threads_) setcontext(&home_);
    next();
    fail("a thread that has ended runs again");
  }

  void next() {
    const auto from = current_;
    do {
      current_ = (current_ + static_cast<std::size_t>(step_)) % threads_;
    } while (all_[current_].done && current_ != from);
    if (current_ == from) {
      if (all_[from].done) fail("no thread is left");
      return;
    }
    swapcontext(&all_[from].context, &all_[current_].context);
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

  const std::function<void()>& body_;
  std::size_t threads_;
  int step_;
  std::int64_t index_ = 0;
  std::size_t current_ = 0, finished_ = 0;
  ucontext_t home_{};
  std::vector<Fiber> all_;
  Barrier block_;
  std::vector<Barrier> groups_;
  std::vector<float> slots_[2];
  std::vector<unsigned> shuffles_;
};

Block* Block::running = nullptr;

}  // namespace

void run_blocks(std::int64_t blocks, int threads, bool reverse,
                const std::function<void()>& thread) {
  Block block(threads, reverse, thread);
  for (std::int64_t i = 0; i < blocks; ++i) block.run(i);
}

int thread_index() { return Block::running->thread(); }
std::int64_t block_index() { return Block::running->index(); }
void sync_block() { Block::running->wait_for_block(); }
void sync_group() { Block::running->wait_for_group(); }
float from_lane(float x, int lane) { return Block::running->exchange(x, lane); }

}  // namespace olmo::gpu
