// What our binary calls of NCCL (libnccl.so.2), which RCCL has under the same names: bytes move
// between processes of one machine through memory that they share, when the turn of a collective
// has come in the queue of its process's emulated GPU (device.h). As there, it may be queued and
// not begun; and it waits for the others until they come or somebody gives it up.
//   FAKE_NCCL_STUCK   FILE: the last rank never joins; it makes this file where it should
//   FAKE_NCCL_FAIL    N: from the N-th collective of a process on the transport is broken
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace olmo::fake;

constexpr int kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5;

/// Bytes from one rank to another.
struct Ring {
  static constexpr std::size_t kSize = 1 << 16;
  std::atomic<std::uint64_t> written = 0, read = 0;
  char bytes[kSize];

  std::size_t put(const char* from, std::size_t count) {
    const auto at = written.load();
    count = std::min(count, kSize - static_cast<std::size_t>(at - read.load()));
    for (std::size_t i = 0; i < count; ++i) bytes[(at + i) % kSize] = from[i];
    written = at + count;
    return count;
  }
  std::size_t take(char* to, std::size_t count) {
    const auto at = read.load();
    count = std::min(count, static_cast<std::size_t>(written.load() - at));
    for (std::size_t i = 0; i < count; ++i) to[i] = bytes[(at + i) % kSize];
    read = at + count;
    return count;
  }
};

struct Shared {
  std::atomic<int> arrived;
  Ring rings[];  ///< [from * size + to]
};

struct Communicator {
  Shared* shared = nullptr;
  int rank = 0, size = 0;
  std::atomic<bool> given_up = false, broken = false;  // given up: gone for the caller, too

  Ring& ring(int from, int to) const { return shared->rings[from * size + to]; }
};
using Handle = std::shared_ptr<Communicator>;

/// A message to or from a peer: its length, and its bytes.
struct Message {
  int peer = 0;
  bool is_sent = false;
  char* memory = nullptr;
  std::uint64_t bytes = 0;
  std::size_t done = 0;      ///< with the length
  std::uint64_t length = 0;  ///< as the other rank has told it

  [[nodiscard]] bool is_done() const { return done == sizeof bytes + bytes; }

  /// Returns whether anything moved.
  bool go_on(const Communicator& of) {
    Ring& ring = is_sent ? of.ring(of.rank, peer) : of.ring(peer, of.rank);
    const std::size_t before = done;
    if (done < sizeof bytes) {
      move(ring, reinterpret_cast<char*>(is_sent ? &bytes : &length) + done, sizeof bytes - done);
      if (!is_sent && done == sizeof bytes && length != bytes) {
        std::fprintf(stderr, "NCCL emulator: %llu bytes came, %llu were expected\n",
                     static_cast<unsigned long long>(length),
                     static_cast<unsigned long long>(bytes));
        std::abort();
      }
    }
    if (done >= sizeof bytes)
      move(ring, memory + (done - sizeof bytes), sizeof bytes + bytes - done);
    return done != before;
  }

  void move(Ring& ring, char* at, std::size_t count) {
    done += is_sent ? ring.put(at, count) : ring.take(at, count);
  }
};

/// In the device's turn.
void pass_all(const Communicator& of, std::vector<Message> messages) {
  for (bool all_done = false; !all_done;) {
    all_done = true;
    bool moved = false;
    std::set<std::pair<int, bool>> busy;  // one message after another on each way
    for (Message& message : messages) {
      if (message.is_done() || !busy.emplace(message.peer, message.is_sent).second) continue;
      all_done = false;
      moved = message.go_on(of) || moved;
    }
    if (of.given_up) return;
    if (!moved && !all_done) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// What was asked for within a group.
thread_local int depth = 0;
struct Grouped {
  Handle of;
  std::vector<Message> messages;
  void* stream;
};
thread_local std::vector<Grouped> grouped;

int number_of(void* stream) { return static_cast<int>(reinterpret_cast<std::intptr_t>(stream)); }

bool is_broken() {
  static std::atomic<int> count = 0;
  const char* wanted = std::getenv("FAKE_NCCL_FAIL");
  return wanted != nullptr && ++count >= std::atoi(wanted);
}

int queue(const Handle& of, std::vector<Message> messages, void* stream) {
  if (of->given_up) return kInvalidArgument;
  for (const Message& message : messages)
    if (message.peer < 0 || message.peer >= of->size || !owns(message.memory))
      return kInvalidArgument;
  if (depth == 0) {
    if (is_broken()) of->broken = true;
    submit(
        [of, messages = std::move(messages)] {
          while (of->broken && !of->given_up)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          pass_all(*of, messages);
        },
        number_of(stream));
    return 0;
  }
  for (auto& known : grouped) {
    if (known.of != of) continue;
    if (known.stream != stream) return kInvalidUsage;
    known.messages.insert(known.messages.end(), messages.begin(), messages.end());
    return 0;
  }
  grouped.push_back({of, std::move(messages), stream});
  return 0;
}

char* memory_of(const void* address) { return static_cast<char*>(const_cast<void*>(address)); }

struct Id {
  char path[128];
};

/// Of a communicator that is there: the real library would read memory that was freed.
const Handle& handle(void* communicator) {
  const Handle& of = *static_cast<Handle*>(communicator);
  if (!of->given_up) return of;
  std::fprintf(stderr, "NCCL emulator: a call with a communicator that was aborted\n");
  std::abort();
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int ncclGetVersion(int* version) {
  *version = 22703;
  return 0;
}
EXPORTED const char* ncclGetErrorString(int code) {
  if (code == kSystemError) return "unhandled system error";
  if (code == kInvalidUsage) return "invalid usage";
  return code == kInvalidArgument ? "invalid argument" : "no error";
}

EXPORTED int ncclGetUniqueId(Id* id) {
  const char* folder = std::getenv("TMPDIR");
  std::snprintf(id->path, sizeof id->path, "%s/olmo-fake-nccl-XXXXXX",
                folder != nullptr ? folder : "/tmp");
  const int file = ::mkstemp(id->path);
  if (file < 0) return kSystemError;
  ::close(file);
  return 0;
}

EXPORTED int ncclCommInitRank(void** communicator, int size, Id id, int rank) {
  if (size < 1 || rank < 0 || rank >= size) return kInvalidArgument;
  if (!has_device()) return kInvalidUsage;  // the real one takes the first GPU
  if (const char* sign = std::getenv("FAKE_NCCL_STUCK"); sign != nullptr && rank == size - 1) {
    ::close(::open(sign, O_CREAT | O_WRONLY, 0600));
    for (;;) ::pause();
  }
  const int file = ::open(id.path, O_RDWR);
  const std::size_t bytes = sizeof(Shared) + sizeof(Ring) * static_cast<std::size_t>(size * size);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return kSystemError;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return kSystemError;
  auto made = std::make_shared<Communicator>();
  made->shared = static_cast<Shared*>(memory);
  made->rank = rank;
  made->size = size;
  if (++made->shared->arrived == size) ::unlink(id.path);
  for (int i = 0; made->shared->arrived < size; ++i) {
    if (i > 60'000) return kSystemError;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  *communicator = new Handle(std::move(made));
  go_on_alone();
  return 0;
}
EXPORTED int ncclCommDestroy(void* communicator) {
  static_cast<void>(handle(communicator));
  wait_for_all_streams();
  delete static_cast<Handle*>(communicator);
  return 0;
}
EXPORTED int ncclCommAbort(void* communicator) {
  handle(communicator)->given_up = true;
  return 0;
}
EXPORTED int ncclCommGetAsyncError(void* communicator, int* code) {
  *code = handle(communicator)->broken ? kSystemError : 0;
  return 0;
}

EXPORTED int ncclSend(const void* from, std::size_t count, int type, int peer, void* communicator,
                      void* stream) {
  if (type != 0) return kInvalidArgument;
  return queue(handle(communicator), {{peer, true, memory_of(from), count}}, stream);
}
EXPORTED int ncclRecv(void* to, std::size_t count, int type, int peer, void* communicator,
                      void* stream) {
  if (type != 0) return kInvalidArgument;
  return queue(handle(communicator), {{peer, false, memory_of(to), count}}, stream);
}
EXPORTED int ncclGroupStart() {
  ++depth;
  return 0;
}
EXPORTED int ncclGroupEnd() {
  if (depth == 0) return kInvalidUsage;
  if (--depth > 0) return 0;
  int code = 0;
  for (auto& [of, messages, stream] : std::exchange(grouped, {}))
    if (const int each = queue(of, std::move(messages), stream); each != 0) code = each;
  return code;
}

EXPORTED int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                           void* communicator, void* stream) {
  const Handle& of = handle(communicator);
  if (type != 0 || !owns(from) || !owns(to)) return kInvalidArgument;
  char* const own = memory_of(to) + static_cast<std::size_t>(of->rank) * count;
  submit([=] { std::memmove(own, from, count); }, number_of(stream));
  std::vector<Message> messages;
  for (int peer = 0; peer < of->size; ++peer) {
    if (peer == of->rank) continue;
    messages.push_back({peer, true, own, count});
    messages.push_back(
        {peer, false, memory_of(to) + static_cast<std::size_t>(peer) * count, count});
  }
  return queue(of, std::move(messages), stream);
}
EXPORTED int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                           void* communicator, void* stream) {
  const Handle& of = handle(communicator);
  if (type != 0 || from != to) return kInvalidArgument;
  std::vector<Message> messages;
  if (of->rank != root) {
    messages.push_back({root, false, memory_of(to), count});
  } else {
    for (int peer = 0; peer < of->size; ++peer)
      if (peer != root) messages.push_back({peer, true, memory_of(to), count});
  }
  return queue(of, std::move(messages), stream);
}
