#include "dist/address.h"

#include <future>
#include <map>

#include "core/error.h"
#include "dist/memory_store.h"
#include "dist/watch.h"
#include "support/catch.h"
#include "support/environment.h"

namespace olmo::dist {
namespace {

using Catch::Matchers::Contains;

/// A rank's machine, and the ways that lead from it by the name of the host.
struct Place {
  std::string machine;
  std::map<std::string, Route> routes;
};

/// The address of each rank, or the sentence with which it is refused.
std::vector<std::string> addresses(const std::vector<Place>& places,
                                   const std::string& meeting_host = "node1") {
  const test::Environment no_interface("GLOO_SOCKET_IFNAME", "");
  const auto values = std::make_shared<MemoryValues>();
  std::vector<std::future<std::string>> found;
  for (std::size_t i = 0; i < places.size(); ++i) {
    MemoryStore store(values);
    auto who = own_identity();
    who.host = "node1";
    if (!places[i].machine.empty()) who.boot_id = places[i].machine;
    enlist(store, static_cast<int>(i), who);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    found.push_back(std::async(std::launch::async, [&, i]() -> std::string {
      MemoryStore store(values);
      AddressSearch search{.rank = static_cast<int>(i),
                           .size = static_cast<int>(places.size()),
                           .meeting_host = meeting_host};
      search.find_route = [&](const std::string& host) -> std::optional<Route> {
        const auto route = places[i].routes.find(host);
        return route == places[i].routes.end() ? std::nullopt : std::optional(route->second);
      };
      try {
        return find_own_address(store, search);
      } catch (const Error& error) {
        return error.what();
      }
    }));
  }
  std::vector<std::string> result;
  for (auto& each : found) result.push_back(each.get());
  return result;
}

using Addresses = std::vector<std::string>;

TEST_CASE("a rank takes the address from which it reaches the machine where the ranks meet",
          "[dist]") {
  CHECK(addresses({{"a", {{"node1", {"10.0.0.1", "10.0.0.1"}}}},
                   {"b", {{"node1", {"10.0.0.2", "10.0.0.1"}}}}}) ==
        Addresses{"10.0.0.1", "10.0.0.2"});
}

TEST_CASE("ranks of a machine whose own name is its loopback take the address that others see",
          "[dist]") {
  const Place here = {"a", {{"node1", {"127.0.0.1", "127.0.1.1"}}}};
  CHECK(addresses({here, here, {"b", {{"node1", {"10.0.0.2", "10.0.0.1"}}}}}) ==
        Addresses{"10.0.0.1", "10.0.0.1", "10.0.0.2"});
}

TEST_CASE("ranks that meet in a folder take the address from which they reach rank 0's machine",
          "[dist]") {
  const Place here = {"a", {{"node1", {"::1", "::1"}}}};
  CHECK(addresses({here, {"b", {{"node1", {"fd00::2", "fd00::1"}}}}}, "") ==
        Addresses{"fd00::1", "fd00::2"});
}

TEST_CASE("ranks of one machine listen at its loopback, whatever its name leads to", "[dist]") {
  CHECK(addresses({{"", {}}, {"", {{"node1", {"127.0.0.1", "127.0.1.1"}}}}}) ==
        Addresses{kLoopback, kLoopback});
}

TEST_CASE("a rank whose address nothing tells is refused with what would tell it", "[dist]") {
  const auto found =
      addresses({{"a", {{own_identity().host, {"127.0.0.1", "127.0.1.1"}}}}, {"b", {}}});
  for (const auto& each : found) {
    CHECK_THAT(each, Contains("GLOO_SOCKET_IFNAME"));
    CHECK_THAT(each, Contains("at which address other machines reach this one is not known"));
  }
  CHECK_THAT(found[0], Contains("its name leads to 127.0.1.1"));
  CHECK_THAT(found[1], Contains("its name has no address"));
}

TEST_CASE("an interface that a variable names goes before every address", "[dist]") {
  const test::Environment interface("GLOO_SOCKET_IFNAME", "lo");
  MemoryStore store(std::make_shared<MemoryValues>());
  CHECK(find_own_address(store, {.meeting_host = "127.0.0.1"}).empty());
}

TEST_CASE("an interface that is not here is refused by its name", "[dist]") {
  const test::Environment interface("GLOO_SOCKET_IFNAME", "lo,hsn9");
  MemoryStore store(std::make_shared<MemoryValues>());
  CHECK_THROWS_WITH(find_own_address(store, {.meeting_host = "127.0.0.1"}),
                    Contains("GLOO_SOCKET_IFNAME is lo,hsn9") && Contains("no interface `hsn9`"));
}

TEST_CASE("the way to a host has the addresses of both ends", "[dist]") {
  const auto route = route_to("127.0.0.1");
  REQUIRE(route);
  CHECK(is_loopback(route->here));
  CHECK(route->there == "127.0.0.1");
  CHECK_FALSE(route_to(std::string(300, 'a')));
}

}  // namespace
}  // namespace olmo::dist
