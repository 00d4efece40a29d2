// See gloo/algorithm.h. The order of the functions is that of the virtual table in LibTorch 2.11's
// libtorch_cpu, read from its relocations.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#define GLOO_STORE_HAS_STORE_V2 1

namespace gloo {

class IStore {
 public:
  using Bytes = std::vector<char>;
  using Keys = std::vector<std::string>;

  virtual ~IStore() = default;
  virtual void set(const std::string& key, const Bytes& value) = 0;
  virtual Bytes get(const std::string& key) = 0;
  virtual Bytes wait_get(const std::string& key, const std::chrono::milliseconds& limit);
  virtual void wait(const Keys& keys, const std::chrono::milliseconds& limit) = 0;
  virtual bool has_v2_support() = 0;
  virtual std::vector<Bytes> multi_get(const Keys& keys) = 0;
  virtual void multi_set(const Keys& keys, const std::vector<Bytes>& values) = 0;
  virtual void append(const std::string& key, const Bytes& value) = 0;
  virtual std::int64_t add(const std::string& key, std::int64_t value) = 0;
};

namespace rendezvous {

class Store : public IStore {
 public:
  using IStore::wait;
  virtual void wait(const Keys& keys) = 0;
};

}  // namespace rendezvous
}  // namespace gloo
