// What ranks tell each other outside of collectives: where to meet, that they live, that one has
// failed. Small values by key, seen by all ranks.
//
// Every rank opens the same store. Its calls end within a time limit, also when the process that
// hosts it is gone or stopped: they throw Error(kFailure) that names the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace olmo::dist {

/// Values by key. Keys and values are any bytes. One thread at a time: another thread takes a store
/// of its own, from again().
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// For messages: "the store at node1:29500".
  [[nodiscard]] virtual std::string name() const = 0;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Sets a key that has no value yet. Returns the value that stands: of several ranks that call
  /// it, all learn the one that came first. `value` is not empty.
  virtual std::string set_first(const std::string& key, const std::string& value) = 0;
  /// The value now, without waiting for one.
  virtual std::optional<std::string> get(const std::string& key) = 0;
  /// The same for several keys; in one trip where the store can do so and all have a value.
  virtual std::vector<std::optional<std::string>> get_all(std::span<const std::string> keys);
  /// Whether each of the keys has a value, in one trip where the store can do so.
  virtual bool has_all(std::span<const std::string> keys);
  virtual void erase(const std::string& key) = 0;

  /// Waits until the key has a value. Asks `check` now and then, which may throw. Throws
  /// Error(kFailure) when the limit has passed.
  std::string wait(const std::string& key, std::chrono::milliseconds limit,
                   const std::function<void()>& check = {});
  /// Waits until each of the keys has a value. Returns whether that was so within the limit.
  bool wait_all(std::span<const std::string> keys, std::chrono::milliseconds limit,
                const std::function<void()>& check = {});

  /// Another way to the same values, for another thread or with another life.
  [[nodiscard]] virtual std::unique_ptr<Store> again() const = 0;

 protected:
  Store() = default;
};

/// A folder with a file a value, on a disk that all ranks see. The folder is made if it is not
/// there, and stays. Values of an earlier attempt would be taken for this one's: give a fresh
/// folder, or a prefix of the attempt. No locks: a stopped or killed rank holds up nobody. Throws
/// Error(kUsage) if the folder cannot be made.
std::unique_ptr<Store> file_store(const std::filesystem::path& folder);

/// Over TCP: c10d's TCPStore, as torchrun's agent hosts one.
struct TcpPlace {
  std::string host;
  std::uint16_t port = 0;
};
struct StoreLimits {
  std::chrono::milliseconds connect = std::chrono::seconds(60);  ///< until the host listens
  std::chrono::milliseconds answer = std::chrono::seconds(60);   ///< to one call
};
/// The store that another process hosts. Throws Error(kFailure) if it cannot be reached in time.
std::unique_ptr<Store> join_tcp_store(const TcpPlace& place, StoreLimits limits = {});
/// Hosts the store in this process, as long as the object (or one made by its again()) lives. Port
/// 0 takes a free one and sets `place.port` to it. Throws Error(kFailure) if the port is taken.
std::unique_ptr<Store> host_tcp_store(TcpPlace& place, StoreLimits limits = {});

/// The same store with `prefix` and a slash before every key.
std::unique_ptr<Store> with_prefix(const Store& store, const std::string& prefix);

}  // namespace olmo::dist
