#include "store/checkpoint/pickled_integers.h"

#include <memory>
#include <optional>
#include <vector>

#include "core/error.h"

namespace olmo::store {
namespace {

using Members = std::map<std::string, std::int64_t>;

/// What the machine that a pickle is written for has on its stack, as far as it matters here. All
/// that is neither a whole number, nor a text, nor a dict, has no member set.
struct Value {
  std::optional<std::int64_t> integer = {};
  std::shared_ptr<const std::string> text = nullptr;
  std::shared_ptr<Members> dict = nullptr;
};

/// Opcodes and their arguments: pickletools.py of CPython.
class PickleReader {
 public:
  PickleReader(std::string_view pickle, const std::string& where) : rest_(pickle), where_(where) {}

  Members read() {
    while (true) {
      const char code = take(1).front();
      if (code == '.') break;
      if (!reads_atom(code) && !reads_memo(code) && !reads_group(code) && !reads_object(code))
        refuse("has an unknown operation");
    }
    const Value top = pop();
    if (!top.dict) refuse("holds no dict");
    return *top.dict;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInput, where_ + ": the pickle " + what);
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > rest_.size()) refuse("ends early");
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const auto digits = take(bytes);
    for (std::size_t i = bytes; i-- > 0;)
      value = value << 8U | static_cast<unsigned char>(digits[i]);
    return value;
  }

  /// In two's complement. Nothing: it does not fit into 64 bits.
  std::optional<std::int64_t> signed_number(std::size_t bytes) {
    constexpr std::size_t kMost = sizeof(std::int64_t);
    if (bytes > kMost) {
      take(bytes);
      return std::nullopt;
    }
    const std::size_t unused = 8 * (kMost - bytes);
    if (bytes == 0) return 0;
    return static_cast<std::int64_t>(number(bytes) << unused) >> unused;
  }

  std::string_view line() {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) refuse("ends early");
    return take(end + 1);
  }

  void push(Value value = {}) { stack_.push_back(std::move(value)); }
  void push_text(std::string_view text) {
    push({.text = std::make_shared<const std::string>(text)});
  }

  Value pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("takes what is not there");
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }

  void replace(int values) {
    while (values-- > 0) pop();
    push();
  }

  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) refuse("takes what is not there");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }

  void set_items(const std::vector<Value>& values) {
    const Value target = pop();
    if (values.size() % 2 != 0) refuse("has a key without a value");
    for (std::size_t i = 0; target.dict && i < values.size(); i += 2) {
      const Value &key = values[i], &value = values[i + 1];
      if (key.text && value.integer) (*target.dict)[*key.text] = *value.integer;
    }
    push(target);
  }

  /// Numbers, texts, and what stands alone.
  bool reads_atom(char code) {
    switch (code) {
      case 'K':  // BININT1
        push({.integer = static_cast<std::int64_t>(number(1))});
        return true;
      case 'M':  // BININT2
        push({.integer = static_cast<std::int64_t>(number(2))});
        return true;
      case 'J':  // BININT
        push({.integer = signed_number(4)});
        return true;
      case '\x8a':  // LONG1
        push({.integer = signed_number(number(1))});
        return true;
      case 'X':  // BINUNICODE
        push_text(take(number(4)));
        return true;
      case '\x8c':  // SHORT_BINUNICODE
        push_text(take(number(1)));
        return true;
      case 'B':  // BINBYTES
        take(number(4));
        push();
        return true;
      case 'C':  // SHORT_BINBYTES
        take(number(1));
        push();
        return true;
      case 'G':  // BINFLOAT
        take(8);
        push();
        return true;
      case 'N':     // NONE
      case '\x88':  // NEWTRUE
      case '\x89':  // NEWFALSE
        push();
        return true;
      default:
        return false;
    }
  }

  /// Values that are kept to be used again, and what tells of the pickle itself.
  bool reads_memo(char code) {
    switch (code) {
      case '\x80':  // PROTO
        take(1);
        return true;
      case '\x95':  // FRAME
        take(8);
        return true;
      case 'q':  // BINPUT
        return keep(number(1));
      case 'r':  // LONG_BINPUT
        return keep(number(4));
      case '\x94':  // MEMOIZE
        return keep(memo_.size());
      case 'h':  // BINGET
        return use(number(1));
      case 'j':  // LONG_BINGET
        return use(number(4));
      default:
        return false;
    }
  }

  bool keep(std::uint64_t index) {
    Value value = pop();
    memo_[index] = value;
    push(std::move(value));
    return true;
  }

  bool use(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("takes what is not there");
    push(found->second);
    return true;
  }

  /// Dicts, lists and tuples.
  bool reads_group(char code) {
    switch (code) {
      case '}':  // EMPTY_DICT
        push({.dict = std::make_shared<Members>()});
        return true;
      case ']':  // EMPTY_LIST
      case ')':  // EMPTY_TUPLE
        push();
        return true;
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case 's': {  // SETITEM
        Value value = pop();
        Value key = pop();
        set_items({std::move(key), std::move(value)});
        return true;
      }
      case 'u':  // SETITEMS
        set_items(pop_to_mark());
        return true;
      case 'a':  // APPEND
        pop();
        return true;
      case 'e':  // APPENDS
        pop_to_mark();
        return true;
      case 't':  // TUPLE
        pop_to_mark();
        push();
        return true;
      case '\x85':  // TUPLE1
      case '\x86':  // TUPLE2
      case '\x87':  // TUPLE3
        replace(code - '\x84');
        return true;
      default:
        return false;
    }
  }

  /// Objects of classes, of which nothing is made.
  bool reads_object(char code) {
    switch (code) {
      case 'c':  // GLOBAL
        line();
        line();
        push();
        return true;
      case '\x93':  // STACK_GLOBAL
      case 'R':     // REDUCE
      case '\x81':  // NEWOBJ
        replace(2);
        return true;
      case 'Q':  // BINPERSID
        replace(1);
        return true;
      case 'b':  // BUILD
        pop();
        return true;
      default:
        return false;
    }
  }

  std::string_view rest_;
  const std::string& where_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  ///< sizes that the stack had
  std::map<std::uint64_t, Value> memo_;
};

}  // namespace

std::map<std::string, std::int64_t> pickled_integers(std::string_view pickle,
                                                     const std::string& where) {
  return PickleReader(pickle, where).read();
}

}  // namespace olmo::store
