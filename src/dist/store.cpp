#include "dist/store.h"

#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/safe_text.h"

namespace olmo::dist {
namespace {

struct Values {
  std::mutex mutex;
  std::map<std::string, std::string> of;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<Values> values) : values_(std::move(values)) {}

  std::string name() const override { return "the store in memory"; }

  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(values_->mutex);
    values_->of[key] = value;
  }
  std::string set_first(const std::string& key, const std::string& value) override {
    OLMO_CHECK(!value.empty());
    const std::lock_guard lock(values_->mutex);
    return values_->of.try_emplace(key, value).first->second;
  }
  std::optional<std::string> get(const std::string& key) override {
    const std::lock_guard lock(values_->mutex);
    const auto found = values_->of.find(key);
    if (found == values_->of.end()) return std::nullopt;
    return found->second;
  }
  void erase(const std::string& key) override {
    const std::lock_guard lock(values_->mutex);
    values_->of.erase(key);
  }
  std::unique_ptr<Store> again() const override { return std::make_unique<MemoryStore>(values_); }

 private:
  std::shared_ptr<Values> values_;
};

class PrefixStore final : public Store {
 public:
  PrefixStore(std::unique_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  std::string name() const override { return store_->name(); }

  void set(const std::string& key, const std::string& value) override {
    store_->set(full(key), value);
  }
  std::string set_first(const std::string& key, const std::string& value) override {
    return store_->set_first(full(key), value);
  }
  std::optional<std::string> get(const std::string& key) override { return store_->get(full(key)); }
  std::vector<std::optional<std::string>> get_all(std::span<const std::string> keys) override {
    std::vector<std::string> all;
    for (const auto& key : keys) all.push_back(full(key));
    return store_->get_all(all);
  }
  void erase(const std::string& key) override { store_->erase(full(key)); }
  std::unique_ptr<Store> again() const override {
    return std::make_unique<PrefixStore>(store_->again(), prefix_);
  }

 private:
  [[nodiscard]] std::string full(const std::string& key) const { return prefix_ + "/" + key; }

  std::unique_ptr<Store> store_;
  std::string prefix_;
};

}  // namespace

std::vector<std::optional<std::string>> Store::get_all(std::span<const std::string> keys) {
  std::vector<std::optional<std::string>> values;
  for (const auto& key : keys) values.push_back(get(key));
  return values;
}

std::string Store::wait(const std::string& key, std::chrono::milliseconds limit,
                        const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kShortest(1), kLongest(100);
  const auto begin = Clock::now();
  for (auto pause = kShortest;; pause = std::min(2 * pause, kLongest)) {
    if (auto value = get(key)) return *std::move(value);
    if (check) check();
    if (Clock::now() - begin > limit) {
      throw Error(ErrorKind::kFailure, name() + ": no rank has set `" + safe_line(key) +
                                           "` within " + std::to_string(limit.count()) + " ms");
    }
    std::this_thread::sleep_for(pause);
  }
}

std::unique_ptr<Store> memory_store() {
  return std::make_unique<MemoryStore>(std::make_shared<Values>());
}

std::unique_ptr<Store> with_prefix(const Store& store, const std::string& prefix) {
  return std::make_unique<PrefixStore>(store.again(), prefix);
}

}  // namespace olmo::dist
