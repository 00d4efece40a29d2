// The store of ranks that are threads of one process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/error.h"
#include "dist/store.h"

namespace olmo::dist {

struct MemoryValues {
  std::mutex mutex;
  std::map<std::string, std::string> of;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryValues> values) : values_(std::move(values)) {}

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
  std::shared_ptr<MemoryValues> values_;
};

/// The values live as long as one of its stores.
inline std::unique_ptr<Store> memory_store() {
  return std::make_unique<MemoryStore>(std::make_shared<MemoryValues>());
}

}  // namespace olmo::dist
