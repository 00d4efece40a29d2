#include "dist/store.h"

#include <algorithm>
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
    return store_->get_all(full(keys));
  }
  bool has_all(std::span<const std::string> keys) override { return store_->has_all(full(keys)); }
  void erase(const std::string& key) override { store_->erase(full(key)); }
  std::unique_ptr<Store> again() const override {
    return std::make_unique<PrefixStore>(store_->again(), prefix_);
  }

 private:
  [[nodiscard]] std::string full(const std::string& key) const { return prefix_ + "/" + key; }
  [[nodiscard]] std::vector<std::string> full(std::span<const std::string> keys) const {
    std::vector<std::string> all;
    for (const auto& key : keys) all.push_back(full(key));
    return all;
  }

  std::unique_ptr<Store> store_;
  std::string prefix_;
};

/// Asks again and again until `done`, in pauses that grow. Returns whether that was within the
/// limit.
bool ask(const std::function<bool()>& done, std::chrono::milliseconds limit,
         const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kShortest(1), kLongest(100);
  const auto begin = Clock::now();
  for (auto pause = kShortest;; pause = std::min(2 * pause, kLongest)) {
    if (done()) return true;
    if (check) check();
    if (Clock::now() - begin > limit) return false;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

std::vector<std::optional<std::string>> Store::get_all(std::span<const std::string> keys) {
  std::vector<std::optional<std::string>> values;
  for (const auto& key : keys) values.push_back(get(key));
  return values;
}

bool Store::has_all(std::span<const std::string> keys) {
  return std::ranges::all_of(keys, [&](const auto& key) { return get(key).has_value(); });
}

bool Store::wait_all(std::span<const std::string> keys, std::chrono::milliseconds limit,
                     const std::function<void()>& check) {
  return ask([&] { return has_all(keys); }, limit, check);
}

std::string Store::wait(const std::string& key, std::chrono::milliseconds limit,
                        const std::function<void()>& check) {
  std::optional<std::string> value;
  if (ask([&] { return (value = get(key)).has_value(); }, limit, check)) return *std::move(value);
  throw Error(ErrorKind::kFailure, name() + ": no rank has set `" + safe_line(key) + "` within " +
                                       std::to_string(limit.count()) + " ms");
}

std::unique_ptr<Store> with_prefix(const Store& store, const std::string& prefix) {
  return std::make_unique<PrefixStore>(store.again(), prefix);
}

}  // namespace olmo::dist
