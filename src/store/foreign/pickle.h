#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olmo::store {

/// A value that a Python pickle describes.
struct PickleValue {
  enum class Kind {
    kOther,  ///< None, true, false, bytes, a float, a whole number beyond 64 bits
    kInteger,
    kText,
    kName,        ///< of a class or function: its module, its name
    kList,        ///< or a tuple: its members
    kDict,        ///< or an OrderedDict: a key, its value, the next key, …
    kCall,        ///< an object: the name of what would make it, the tuple of arguments, and the
                  ///< state that it would be given, if there is one
    kPersistent,  ///< an object that the saver keeps elsewhere: what it calls it
  };
  Kind kind = Kind::kOther;
  std::int64_t integer = 0;
  std::string_view text = {};
  std::vector<const PickleValue*> items = {};

  /// The value of a dict's last key that is this text; null if there is none, or this is no dict.
  [[nodiscard]] const PickleValue* find(std::string_view key) const;
  /// The value of an object's attribute; null if its state does not have it, or this is no object.
  [[nodiscard]] const PickleValue* attribute(std::string_view name) const;
  /// The whole numbers of a list or tuple, or of a torch.Size; nothing: this is none of them, or
  /// has other members.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers() const;
  /// Whether this is the name of that class or function.
  [[nodiscard]] bool is_name(std::string_view module, std::string_view name) const;
  /// The whole numbers of a dict, by the keys that are texts.
  [[nodiscard]] std::map<std::string, std::int64_t> integers() const;
};

/// A Python pickle (protocol 2 to 5), read and never run: what it would call stays a name with
/// arguments. Values can hold each other in
/// circles, so who walks through them bounds the depth.
class Pickle {
 public:
  /// Throws Error(kInput) beginning with `where` for what is none, or ends early.
  Pickle(std::string bytes, const std::string& where);

  [[nodiscard]] const PickleValue& root() const noexcept { return *root_; }

 private:
  std::unique_ptr<const std::string> bytes_;  ///< that the texts are views of
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

}  // namespace olmo::store
