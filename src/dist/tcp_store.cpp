#include <atomic>

#include <netdb.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/error.h"
#include "core/text/safe_text.h"
#include "dist/c10d.h"
#include "dist/store.h"
#include "dist/worker.h"

namespace olmo::dist {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

c10d::TCPStoreOptions options(const TcpPlace& place, const StoreLimits& limits) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.waitWorkers = false;  // ranks meet in their first collective
  options.timeout = limits.connect;
  return options;
}

std::string name_of(const TcpPlace& place) {
  return "the store at " + safe_line(place.host) + ":" + std::to_string(place.port);
}

/// What getaddrinfo says of the host's name; 0: it has an address.
int resolve(const TcpPlace& place) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(place.host.c_str(), nullptr, nullptr, &found);
  if (error == 0) ::freeaddrinfo(found);
  return error;
}

std::string why_not(const TcpPlace& place, const std::exception& error) {
  const std::string text = reason(error);
  if (text.find("EADDRINUSE") != text.npos)
    return "another program has this port, or an earlier attempt that has not ended";
  const int unresolved = resolve(place);
  return unresolved == 0
             ? text
             : std::string("its name has no address here (") + ::gai_strerror(unresolved) + ")";
}

/// The value now, in one trip: c10d's get() waits for one, and its check() tells none. Where a key
/// has none, what is compared with it comes back, and nothing is set; no value of ours is that.
std::optional<std::string> value_of(c10d::TCPStore& store, const std::string& key) {
  const std::string none("\0none", 5);
  const std::string value = text_of(store.compareSet(key, bytes_of(none), bytes_of(none)));
  return value == none ? std::nullopt : std::optional(value);
}

c10::intrusive_ptr<c10d::TCPStore> connect(const TcpPlace& place,
                                           const c10d::TCPStoreOptions& options) {
  prepare_c10d();
  // c10d would try again until its time is over.
  if (resolve(place) == EAI_NONAME) {
    throw Error(ErrorKind::kUsage, name_of(place) + ": no host of this name is known here (" +
                                       ::gai_strerror(EAI_NONAME) + "): expected rank 0's machine");
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(place.host, options);
  } catch (const std::exception& error) {
    const auto* const what = options.isServer ? " cannot be hosted: " : " cannot be reached: ";
    throw Error(ErrorKind::kFailure, name_of(place) + what + why_not(place, error));
  }
}

/// The one connection of this process with a store. A client of c10d's waits without an end for the
/// answer of a host that is stopped: so a worker speaks with the host, and the caller waits for a
/// while only. All stores that come from one by again() share it: c10d asks for the host's name
/// with each connection, which takes seconds where no name server answers, and the host of a
/// thousand ranks would need thousands of descriptors.
class TcpClient {
 public:
  /// `client` may be the host itself, which then lives as long.
  TcpClient(std::string name, StoreLimits limits, c10::intrusive_ptr<c10d::TCPStore> client)
      : name_(std::move(name)), limit_(limits.answer), client_(std::move(client)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  template <class Result>
  Result call(std::function<Result(c10d::TCPStore&)> work) {
    if (broken_) throw Error(ErrorKind::kFailure, name_ + " has not answered before");
    const auto result = std::make_shared<std::optional<Result>>();
    auto done = worker_.run(
        [client = client_, result, work = std::move(work)] { *result = work(*client); });
    const bool in_time = done.wait_for(limit_) == std::future_status::ready;
    if (!in_time && !broken_.exchange(true)) worker_.abandon();
    if (broken_) {  // for this thread, or for another, behind whose task this one was dropped
      throw Error(ErrorKind::kFailure, name_ + " has not answered within " +
                                           std::to_string(limit_.count()) +
                                           " ms: its host is stopped, or the network is down");
    }
    try {
      done.get();
    } catch (const std::exception& error) {
      throw Error(ErrorKind::kFailure, name_ + ": " + reason(error));
    }
    return **result;
  }

 private:
  const std::string name_;
  const std::chrono::milliseconds limit_;
  c10::intrusive_ptr<c10d::TCPStore> client_;
  Worker worker_;
  std::atomic<bool> broken_ = false;
};

class TcpStore final : public Store {
 public:
  explicit TcpStore(std::shared_ptr<TcpClient> client) : client_(std::move(client)) {}

  std::string name() const override { return client_->name(); }

  void set(const std::string& key, const std::string& value) override {
    client_->call<int>([key, value](c10d::TCPStore& store) {
      store.set(key, bytes_of(value));
      return 0;
    });
  }

  std::string set_first(const std::string& key, const std::string& value) override {
    OLMO_CHECK(!value.empty());  // c10d's store takes an empty value for none here
    return client_->call<std::string>([key, value](c10d::TCPStore& store) {
      return text_of(store.compareSet(key, Bytes{}, bytes_of(value)));
    });
  }

  std::optional<std::string> get(const std::string& key) override {
    return client_->call<std::optional<std::string>>(
        [key](c10d::TCPStore& store) { return value_of(store, key); });
  }

  std::vector<std::optional<std::string>> get_all(std::span<const std::string> keys) override {
    using Values = std::vector<std::optional<std::string>>;
    std::vector<std::string> all(keys.begin(), keys.end());
    return client_->call<Values>([all = std::move(all)](c10d::TCPStore& store) {
      Values values;
      if (store.check(all)) {
        for (const auto& value : store.multiGet(all)) values.emplace_back(text_of(value));
      } else {
        for (const auto& key : all) values.push_back(value_of(store, key));
      }
      return values;
    });
  }

  bool has_all(std::span<const std::string> keys) override {
    std::vector<std::string> all(keys.begin(), keys.end());
    return client_->call<bool>(
        [all = std::move(all)](c10d::TCPStore& store) { return store.check(all); });
  }

  void erase(const std::string& key) override {
    client_->call<bool>([key](c10d::TCPStore& store) { return store.deleteKey(key); });
  }

  std::unique_ptr<Store> again() const override { return std::make_unique<TcpStore>(client_); }

 private:
  std::shared_ptr<TcpClient> client_;
};

}  // namespace

std::unique_ptr<Store> join_tcp_store(const TcpPlace& place, StoreLimits limits) {
  return std::make_unique<TcpStore>(
      std::make_shared<TcpClient>(name_of(place), limits, connect(place, options(place, limits))));
}

std::unique_ptr<Store> host_tcp_store(TcpPlace& place, StoreLimits limits) {
  c10d::TCPStoreOptions hosting = options(place, limits);
  hosting.isServer = true;
  auto host = connect(place, hosting);
  place.port = host->getPort();
  return std::make_unique<TcpStore>(
      std::make_shared<TcpClient>(name_of(place), limits, std::move(host)));
}

}  // namespace olmo::dist
