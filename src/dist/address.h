// At which address the other ranks reach this one.
//
// c10d takes the address of the machine's own name. Installations of Debian and Ubuntu give that
// name 127.0.1.1, and containers often none: no other machine reaches it there. So a rank takes the
// address from which it reaches the machine where the ranks meet; one that is on that machine takes
// the address at which the others see it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <netdb.h>

#include "dist/store.h"

namespace olmo::dist {

inline constexpr char kLoopback[] = "127.0.0.1";

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
/// Those of a host and port for sockets of a kind (SOCK_STREAM, SOCK_DGRAM); empty if there are
/// none. `flags`: getaddrinfo's.
Addresses find_addresses(const std::string& host, const std::string& port, int kind, int flags = 0);

/// The interfaces that GLOO_SOCKET_IFNAME names: "eth0", or "hsn0,hsn1".
std::vector<std::string> named_interfaces();

/// Whether an address, written in numbers, is reached from its own machine only.
bool is_loopback(const std::string& address);

/// The addresses at both ends of a way over the network, in numbers.
struct Route {
  std::string here, there;
};

/// The way to `host`, over IPv4 where that leads there; nothing if the name is not known here or no
/// way is. Sends nothing.
std::optional<Route> route_to(const std::string& host);
using FindRoute = std::function<std::optional<Route>(const std::string& host)>;

/// What a rank knows when it looks for its address.
struct AddressSearch {
  int rank = 0, size = 1;
  std::string meeting_host = {};  ///< where the ranks meet; empty: in a folder
  bool one_machine = false;       ///< the launcher says that all ranks are on this one
  std::chrono::milliseconds limit{60'000};
  std::function<void()> check = {};  ///< asked while other ranks are waited for; may throw
  FindRoute find_route = route_to;
};

/// The address of this machine at which the rank is to listen; empty where GLOO_SOCKET_IFNAME names
/// an interface. Every rank calls it, after all have enlisted in `store`. Throws Error(kUsage) that
/// names the network's interfaces where none of them is known to lead to the other machines.
std::string find_own_address(Store& store, const AddressSearch& search);

}  // namespace olmo::dist
