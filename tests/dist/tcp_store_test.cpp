#include <thread>

#include "core/error.h"
#include "core/files/input_file.h"
#include "dist/store.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/stopped_child.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

/// This process again, hosting a store until it is killed.
class Host {
 public:
  Host()
      : child_({"/proc/self/exe", "a process that hosts a store"}, folder_ / "host", std::nullopt,
               [this] { ::setenv("OLMO_TEST_STORE", (folder_ / "store").c_str(), 1); }) {
    const auto port = file_store(folder_ / "store")->wait("port", 60s);
    place_ = {"127.0.0.1", static_cast<std::uint16_t>(std::stoi(port))};
  }
  [[nodiscard]] const TcpPlace& place() const { return place_; }
  void kill() const { child_.signal(SIGKILL); }
  void stop() { child_.stop(); }

 private:
  test::TemporaryDirectory folder_;
  test::StoppedChild child_;
  TcpPlace place_;
};

TEST_CASE("a process that hosts a store", "[.dist-host]") {
  const char* const folder = std::getenv("OLMO_TEST_STORE");
  REQUIRE(folder != nullptr);
  TcpPlace place{"127.0.0.1", 0};
  const auto store = host_tcp_store(place);
  file_store(folder)->set("port", std::to_string(place.port));
  for (;;) ::pause();
}

TEST_CASE("processes share the store that one of them hosts", "[dist]") {
  const Host host;
  const auto one = join_tcp_store(host.place()), two = join_tcp_store(host.place());
  one->set("x", "1");
  // c10d's host acknowledges no set, so another client may ask before it is done.
  CHECK(test::happens([&] { return two->get("x") == "1"; }));
}

TEST_CASE("a host whose name cannot be an address is refused at once", "[dist]") {
  for (const char* const host : {"fe80::1%none", "::1::2"}) {
    TcpPlace place{host, 29500};
    CHECK_THROWS_WITH(join_tcp_store(place), Contains("no host of this name is known here"));
    CHECK_THROWS_WITH(host_tcp_store(place), Contains("no host of this name is known here"));
  }
}

TEST_CASE("a port that another program has is called so", "[dist]") {
  const Host host;
  TcpPlace place = host.place();
  CHECK_THROWS_WITH(host_tcp_store(place), Contains("another program has this port"));
}

TEST_CASE("a store whose host is killed says that it does not answer", "[dist]") {
  const Host host;
  const auto store = join_tcp_store(host.place());
  store->set("x", "1");
  host.kill();
  CHECK_THROWS_WITH(store->get("x"), Contains("the store at 127.0.0.1"));
}

TEST_CASE("a store whose host is stopped holds nobody longer than the limit", "[dist]") {
  Host host;
  const auto store = join_tcp_store(host.place(), {.answer = 100ms});
  host.stop();
  CHECK_THROWS_WITH(store->get("x"), Contains("has not answered within 100 ms"));
  CHECK_THROWS_WITH(store->get("x"), Contains("has not answered before"));
}

TEST_CASE("each thread that waits for a stopped host is told that it does not answer", "[dist]") {
  Host host;
  const auto store = join_tcp_store(host.place(), {.answer = 300ms});
  host.stop();
  std::string said;
  std::jthread later([&said, other = store->again()] {
    std::this_thread::sleep_for(100ms);  // its question lies behind the first one
    try {
      other->get("x");
    } catch (const Error& error) {
      said = error.what();
    }
  });
  CHECK_THROWS_WITH(store->get("x"), Contains("has not answered within 300 ms"));
  later.join();
  CHECK_THAT(said, Contains("has not answered"));
}

TEST_CASE("a port that is taken, and one where nobody listens, are named", "[dist]") {
  TcpPlace taken{"127.0.0.1", 0};
  {
    const auto store = host_tcp_store(taken);
    CHECK_THROWS_WITH(host_tcp_store(taken),
                      Contains("cannot be hosted") && Contains(std::to_string(taken.port)));
  }
  CHECK_THROWS_WITH(join_tcp_store(taken, {.connect = 50ms}), Contains("cannot be reached"));
}

}  // namespace
}  // namespace olmo::dist
