#include "dist/store.h"

#include <set>
#include <thread>

#include "core/error.h"
#include "dist/memory_store.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

using namespace std::chrono_literals;

/// A store of each kind.
struct AnyStore {
  explicit AnyStore(const std::string& kind) {
    TcpPlace place{"127.0.0.1", 0};
    if (kind == "memory") store = memory_store();
    if (kind == "file") store = file_store(folder / "store");
    if (kind == "tcp") store = host_tcp_store(place);
  }
  test::TemporaryDirectory folder;
  std::unique_ptr<Store> store;
};

TEST_CASE("a store keeps the last value of each key", "[dist]") {
  const AnyStore any(GENERATE("memory", "file", "tcp"));
  Store& store = *any.store;
  CHECK_FALSE(store.get("a"));
  store.set("a", "1");
  store.set("a", "2");
  store.set("b/../c %", std::string("\0\n.", 3));
  store.set("empty", "");
  CHECK((store.get("a") == "2"));
  CHECK((store.get("b/../c %") == std::string("\0\n.", 3)));
  CHECK((store.get("empty") == ""));
  const std::vector<std::string> some = {"empty", "none", "a"}, all = {"a", "empty"};
  CHECK((store.get_all(some) == std::vector<std::optional<std::string>>{"", std::nullopt, "2"}));
  CHECK((store.get_all(all) == std::vector<std::optional<std::string>>{"2", ""}));
  CHECK_FALSE(store.has_all(some));
  CHECK(store.has_all(all));
  store.erase("a");
  CHECK_FALSE(store.get("a"));
  store.erase("a");
}

TEST_CASE("of several first values one stands, and everyone learns it", "[dist]") {
  const AnyStore any(GENERATE("memory", "file", "tcp"));
  std::mutex mutex;
  std::set<std::string> stands;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i, store = any.store->again()] {
      const auto value = store->set_first("failure", std::to_string(i));
      const std::lock_guard lock(mutex);
      stands.insert(value);
    });
  }
  threads.clear();
  CHECK(stands.size() == 1);
  CHECK((any.store->get("failure") == *stands.begin()));
}

TEST_CASE("a value that another sets ends the wait for it", "[dist]") {
  const AnyStore any(GENERATE("memory", "file", "tcp"));
  const std::jthread other([store = any.store->again()] { store->set("x", "5"); });
  CHECK((any.store->wait("x", 60s) == "5"));
}

TEST_CASE("a wait ends with its limit, or when its check throws", "[dist]") {
  const AnyStore any("memory");
  CHECK_THROWS_WITH(any.store->wait("x\n", 2ms), Catch::Matchers::Contains("no rank has set"));
  const auto check = [] { throw Error(ErrorKind::kStopped, "rank 3 failed"); };
  CHECK_THROWS_WITH(any.store->wait("x", 60s, check), "rank 3 failed");
}

TEST_CASE("stores with different prefixes share no key", "[dist]") {
  const AnyStore any(GENERATE("memory", "file", "tcp"));
  const auto one = with_prefix(*any.store, "1"), two = with_prefix(*any.store, "2");
  one->set("key", "one");
  CHECK_FALSE(two->get("key"));
  CHECK((two->set_first("key", "two") == "two"));
  // c10d's host acknowledges no set, so another client may ask before it is done.
  CHECK(test::happens([&] { return any.store->get("1/key") == "one"; }));
  const std::vector<std::string> keys = {"key", "key"};
  CHECK((two->again()->get_all(keys) == std::vector<std::optional<std::string>>{"two", "two"}));
}

}  // namespace
}  // namespace olmo::dist
