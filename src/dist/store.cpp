#include "dist/store.h"

#include <thread>

#include "core/error.h"
#include "core/text/safe_text.h"

namespace olmo::dist {
namespace {

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

std::unique_ptr<Store> with_prefix(const Store& store, const std::string& prefix) {
  return std::make_unique<PrefixStore>(store.again(), prefix);
}

}  // namespace olmo::dist
