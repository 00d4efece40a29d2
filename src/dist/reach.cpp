#include "dist/reach.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include <poll.h>
#include <sys/socket.h>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/process_identity.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "dist/address.h"
#include "dist/watch.h"

namespace olmo::dist {
namespace {

constexpr char kNotTried[] = "-";

std::string place_key(int rank) { return "reach/" + std::to_string(rank); }
std::string done_key(int rank) { return "reached/" + std::to_string(rank); }

Descriptor stream_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Of an address and a port in numbers; empty if they are none.
Addresses parse_place(const std::string& address, const std::string& port) {
  return find_addresses(address, port, SOCK_STREAM, AI_NUMERICHOST | AI_NUMERICSERV);
}

/// A port of an address, at which the kernel answers as long as the object lives.
class Listener {
 public:
  explicit Listener(const std::string& address)
      : to_(parse_place(address, "0")), socket_(stream_socket(to_ ? to_->ai_family : AF_INET)) {
    sockaddr_storage here{};
    socklen_t size = sizeof here;
    auto* const generic = reinterpret_cast<sockaddr*>(&here);
    constexpr int kWaiting = 16;
    const bool listens = to_ && ::bind(socket_.number(), to_->ai_addr, to_->ai_addrlen) == 0 &&
                         ::listen(socket_.number(), kWaiting) == 0 &&
                         ::getsockname(socket_.number(), generic, &size) == 0;
    char port[NI_MAXSERV] = {};
    if (!listens ||
        ::getnameinfo(generic, size, nullptr, 0, port, sizeof port, NI_NUMERICSERV) != 0)
      throw Error(ErrorKind::kFailure,
                  "this rank cannot listen at " + safe_line(address) + ": " + std::strerror(errno));
    port_ = port;
  }
  [[nodiscard]] const std::string& port() const { return port_; }

 private:
  Addresses to_;
  Descriptor socket_;
  std::string port_;
};

/// Why there is no connection to that place; empty: there was one.
std::string failure_to_connect(const std::string& address, const std::string& port,
                               std::chrono::milliseconds patience) {
  const Addresses to = parse_place(address, port);
  if (!to) return "no address";
  const Descriptor socket = stream_socket(to->ai_family);
  if (::connect(socket.number(), to->ai_addr, to->ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd waiting{socket.number(), POLLOUT, 0};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) == 0)
    return "no answer within " + seconds_text(patience);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "" : std::strerror(error);
}

void reach(Store& store, const ReachTrial& trial, int next) {
  const std::string place = store.wait(place_key(next), trial.limit, trial.check);
  if (place == kNotTried) return;
  std::istringstream words(place);
  std::string address, port;
  words >> address >> port;
  const std::string why = failure_to_connect(address, port, trial.patience);
  if (why.empty()) return;
  throw Error(ErrorKind::kFailure,
              safe_line(own_identity().host) + " does not reach " +
                  name_of_rank(next, enlisted(store, next)) + " at " + safe_line(address) +
                  ", port " + safe_line(port) + ": " + why +
                  "; the ranks of a training connect at any port: expected a network without a "
                  "firewall between their machines, which GLOO_SOCKET_IFNAME may name");
}

}  // namespace

void require_reach(Store& store, const ReachTrial& trial) {
  if (trial.address.empty() || is_loopback(trial.address)) {
    store.set(place_key(trial.rank), kNotTried);
    store.set(done_key(trial.rank), "1");
    return;
  }
  const Listener listener(trial.address);
  store.set(place_key(trial.rank), trial.address + " " + listener.port());
  reach(store, trial, (trial.rank + 1) % trial.size);
  store.set(done_key(trial.rank), "1");
  const int before = (trial.rank + trial.size - 1) % trial.size;
  store.wait(done_key(before), trial.limit + trial.patience, trial.check);
}

}  // namespace olmo::dist
