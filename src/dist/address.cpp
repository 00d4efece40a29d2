#include "dist/address.h"

#include <set>
#include <sstream>

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/process_identity.h"
#include "core/text/safe_text.h"
#include "dist/watch.h"

namespace olmo::dist {
namespace {

/// What a rank tells of an end that is the other's loopback, or of no way at all.
constexpr char kNoAddress[] = "-";

std::string route_key(int rank) { return "route/" + std::to_string(rank); }

std::string text_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  const int error =
      ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST | NI_NUMERICSERV);
  return error == 0 ? text : "";
}

/// Connects a datagram socket, for which the kernel chooses a way and sends nothing.
std::optional<Route> route_over(const addrinfo& to) {
  const Descriptor socket(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  if (::connect(socket.number(), to.ai_addr, to.ai_addrlen) != 0 ||
      ::getsockname(socket.number(), address, &size) != 0)
    return std::nullopt;
  Route route{text_of(address, size), text_of(to.ai_addr, to.ai_addrlen)};
  return route.here.empty() || route.there.empty() ? std::nullopt : std::optional(route);
}

/// The names of the interfaces that have an address; `outward`: without the loopback's.
std::set<std::string> network_interfaces(bool outward) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::set<std::string> names;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const bool counts =
        (each->ifa_flags & IFF_UP) != 0 && !(outward && (each->ifa_flags & IFF_LOOPBACK) != 0);
    const int family = each->ifa_addr == nullptr ? AF_UNSPEC : each->ifa_addr->sa_family;
    if (counts && (family == AF_INET || family == AF_INET6)) names.insert(each->ifa_name);
  }
  return names;
}

/// "expected GLOO_SOCKET_IFNAME with …", for a sentence.
std::string expected_interface() {
  std::string here;
  for (const auto& name : network_interfaces(true))
    here += (here.empty() ? "" : ", ") + safe_line(name);
  return "expected GLOO_SOCKET_IFNAME with the name of the network's interface (" +
         (here.empty() ? "there is none here" : "here are " + here) + ")";
}

/// Throws Error(kUsage) if this machine does not have one of them.
void require_interfaces(const std::vector<std::string>& named) {
  const auto here = network_interfaces(false);
  for (const auto& name : named) {
    if (here.contains(name)) continue;
    throw Error(ErrorKind::kUsage,
                "GLOO_SOCKET_IFNAME is " + safe_line(environment_variable("GLOO_SOCKET_IFNAME")) +
                    ", but " + safe_line(own_identity().host) + " has no interface `" +
                    safe_line(name) + "` with an address: " + expected_interface());
  }
}

bool is_one_machine(Store& store, int size) {
  const std::string mine = own_identity().machine();
  for (int rank = 0; rank < size; ++rank) {
    const auto who = enlisted(store, rank);
    if (!who || who->machine() != mine) return false;
  }
  return true;
}

/// The address at which the first rank that is elsewhere sees the machine where the ranks meet.
std::optional<std::string> seen_by_others(Store& store, const AddressSearch& search) {
  for (int rank = 0; rank < search.size; ++rank) {
    const auto seen = store.wait(route_key(rank), search.limit, search.check);
    if (seen != kNoAddress) return seen;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::optional<Route>& by_name) {
  throw Error(ErrorKind::kUsage,
              "at which address other machines reach this one is not known: its name " +
                  (by_name ? "leads to " + by_name->there : "has no address") + "; " +
                  expected_interface());
}

}  // namespace

std::vector<std::string> named_interfaces() {
  std::istringstream words(environment_variable("GLOO_SOCKET_IFNAME"));
  std::vector<std::string> names;
  for (std::string name; std::getline(words, name, ',');) names.push_back(name);
  return names;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

Addresses find_addresses(const std::string& host, const std::string& port, int kind, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = kind;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) found = nullptr;
  return {found, ::freeaddrinfo};
}

std::optional<Route> route_to(const std::string& host) {
  // The port is never used, but some kernels connect to none without a number.
  const Addresses found = find_addresses(host, "9", SOCK_DGRAM);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      if (each->ai_family != family) continue;
      if (auto route = route_over(*each)) return route;
    }
  }
  return std::nullopt;
}

std::string find_own_address(Store& store, const AddressSearch& search) {
  if (search.one_machine) {
    store.set(route_key(search.rank), kNoAddress);
    return kLoopback;
  }
  const auto& host = search.meeting_host;
  const auto route = search.find_route(host.empty() ? enlisted(store, 0).value().host : host);
  const bool leads_out = route && !is_loopback(route->here);
  const bool names_other = route && !is_loopback(route->there);
  store.set(route_key(search.rank), names_other ? route->there : kNoAddress);
  const auto named = named_interfaces();
  require_interfaces(named);
  if (!named.empty()) return {};
  if (leads_out) return route->here;
  if (route) {
    if (const auto seen = seen_by_others(store, search)) return *seen;
  }
  if (is_one_machine(store, search.size)) return kLoopback;
  const auto by_name = search.find_route(own_identity().host);
  if (!by_name || is_loopback(by_name->here)) refuse(by_name);
  return by_name->here;
}

}  // namespace olmo::dist
