#include "store/foreign/pickle.h"

#include <optional>
#include <span>

#include "core/error.h"
#include "core/files/little_endian.h"

namespace olmo::store {
namespace {

using Kind = PickleValue::Kind;

/// The machine that a pickle is written for. Opcodes and their arguments: pickletools.py of
/// CPython.
class PickleReader {
 public:
  PickleReader(std::string_view pickle, std::deque<PickleValue>& values, const std::string& where)
      : rest_(pickle), values_(values), where_(where) {}

  const PickleValue* read() {
    while (true) {
      const char code = take(1).front();
      if (code == '.') return pop();
      if (!reads_number(code) && !reads_text(code) && !reads_memo(code) && !reads_group(code) &&
          !reads_object(code))
        refuse("has an unknown operation");
    }
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

  std::uint64_t number(std::size_t bytes) { return little_endian(take(bytes)); }

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

  /// Without its line feed.
  std::string_view line() {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) refuse("ends early");
    return take(end + 1).substr(0, end);
  }

  PickleValue* make(PickleValue value) { return &values_.emplace_back(std::move(value)); }
  PickleValue* make_text(std::string_view text) {
    return make({.kind = Kind::kText, .text = text});
  }

  bool push(PickleValue* value) {
    stack_.push_back(value);
    return true;
  }
  bool push(PickleValue value) { return push(make(std::move(value))); }
  bool push_integer(std::optional<std::int64_t> value) {
    if (!value) return push(PickleValue{});
    return push({.kind = Kind::kInteger, .integer = *value});
  }
  bool skip(std::uint64_t bytes) {
    take(bytes);
    return push(PickleValue{});
  }

  PickleValue* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("takes what is not there");
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }

  std::vector<const PickleValue*> pop_many(std::size_t count) {
    std::vector<const PickleValue*> values(count);
    for (std::size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }

  std::vector<const PickleValue*> pop_to_mark() {
    if (marks_.empty()) refuse("takes what is not there");
    auto values = pop_many(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }

  /// Adds to the dict or list on top of the stack; to another object, nothing.
  bool add(Kind to, const std::vector<const PickleValue*>& values) {
    PickleValue* target = pop();
    if (to == Kind::kDict && values.size() % 2 != 0) refuse("has a key without a value");
    if (target->kind == to) target->items.insert(target->items.end(), values.begin(), values.end());
    return push(target);
  }

  bool call(const PickleValue* name, const PickleValue* arguments) {
    const bool is_dict = name->is_name("collections", "OrderedDict") && arguments->items.empty();
    if (is_dict) return push({.kind = Kind::kDict});
    return push({.kind = Kind::kCall, .items = {name, arguments}});
  }

  /// Gives an object its state; a dict's is dropped.
  bool build() {
    const PickleValue* state = pop();
    PickleValue* object = pop();
    if (object->kind == Kind::kCall && object->items.size() == 2) object->items.push_back(state);
    return push(object);
  }

  /// Numbers, and what stands alone.
  bool reads_number(char code) {
    switch (code) {
      case 'K':  // BININT1
        return push_integer(static_cast<std::int64_t>(number(1)));
      case 'M':  // BININT2
        return push_integer(static_cast<std::int64_t>(number(2)));
      case 'J':  // BININT
        return push_integer(signed_number(4));
      case '\x8a':  // LONG1
        return push_integer(signed_number(number(1)));
      case 'G':  // BINFLOAT
        return skip(8);
      case 'N':     // NONE
      case '\x88':  // NEWTRUE
      case '\x89':  // NEWFALSE
        return push(PickleValue{});
      default:
        return false;
    }
  }

  bool reads_text(char code) {
    switch (code) {
      case 'X':  // BINUNICODE
        return push(make_text(take(number(4))));
      case '\x8c':  // SHORT_BINUNICODE
        return push(make_text(take(number(1))));
      case 'B':  // BINBYTES
        return skip(number(4));
      case 'C':  // SHORT_BINBYTES
        return skip(number(1));
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
    PickleValue* value = pop();
    memo_[index] = value;
    return push(value);
  }

  bool use(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("takes what is not there");
    return push(found->second);
  }

  /// Dicts, lists and tuples.
  bool reads_group(char code) {
    switch (code) {
      case '}':  // EMPTY_DICT
        return push({.kind = Kind::kDict});
      case ']':  // EMPTY_LIST
      case ')':  // EMPTY_TUPLE
        return push({.kind = Kind::kList});
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case 's':  // SETITEM
        return add(Kind::kDict, pop_many(2));
      case 'u':  // SETITEMS
        return add(Kind::kDict, pop_to_mark());
      case 'a':  // APPEND
        return add(Kind::kList, pop_many(1));
      case 'e':  // APPENDS
        return add(Kind::kList, pop_to_mark());
      case 't':  // TUPLE
        return push({.kind = Kind::kList, .items = pop_to_mark()});
      case '\x85':  // TUPLE1
      case '\x86':  // TUPLE2
      case '\x87':  // TUPLE3
        return push(
            {.kind = Kind::kList, .items = pop_many(static_cast<std::size_t>(code - '\x84'))});
      default:
        return false;
    }
  }

  /// Objects of classes, of which nothing is made.
  bool reads_object(char code) {
    switch (code) {
      case 'c': {  // GLOBAL
        const PickleValue* module = make_text(line());
        return push({.kind = Kind::kName, .items = {module, make_text(line())}});
      }
      case '\x93':  // STACK_GLOBAL
        return push({.kind = Kind::kName, .items = pop_many(2)});
      case 'R':       // REDUCE
      case '\x81': {  // NEWOBJ
        const auto parts = pop_many(2);
        return call(parts[0], parts[1]);
      }
      case 'Q':  // BINPERSID
        return push({.kind = Kind::kPersistent, .items = pop_many(1)});
      case 'b':  // BUILD
        return build();
      default:
        return false;
    }
  }

  std::string_view rest_;
  std::deque<PickleValue>& values_;
  const std::string& where_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  ///< sizes that the stack had
  std::map<std::uint64_t, PickleValue*> memo_;
};

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  if (kind != Kind::kDict) return nullptr;
  for (std::size_t i = items.size(); i >= 2; i -= 2) {
    if (items[i - 2]->kind == Kind::kText && items[i - 2]->text == key) return items[i - 1];
  }
  return nullptr;
}

const PickleValue* PickleValue::attribute(std::string_view name) const {
  if (kind != Kind::kCall || items.size() != 3) return nullptr;
  const PickleValue* state = items[2];
  // Of a class with __slots__: (its dict or None, the values of the slots).
  if (state->kind == Kind::kList && state->items.size() == 2) state = state->items[1];
  return state->find(name);
}

std::optional<std::vector<std::int64_t>> PickleValue::whole_numbers() const {
  const PickleValue* list = this;
  if (kind == Kind::kCall && items[0]->is_name("torch", "Size") && !items[1]->items.empty())
    list = items[1]->items[0];
  if (list->kind != Kind::kList) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const PickleValue* item : list->items) {
    if (item->kind != Kind::kInteger) return std::nullopt;
    numbers.push_back(item->integer);
  }
  return numbers;
}

bool PickleValue::is_name(std::string_view module, std::string_view name) const {
  return kind == Kind::kName && items[0]->text == module && items[1]->text == name;
}

std::map<std::string, std::int64_t> PickleValue::integers() const {
  std::map<std::string, std::int64_t> numbers;
  if (kind != Kind::kDict) return numbers;
  for (std::size_t i = 0; i < items.size(); i += 2) {
    if (items[i]->kind == Kind::kText && items[i + 1]->kind == Kind::kInteger)
      numbers[std::string(items[i]->text)] = items[i + 1]->integer;
  }
  return numbers;
}

Pickle::Pickle(std::string bytes, const std::string& where)
    : bytes_(std::make_unique<const std::string>(std::move(bytes))),
      root_(PickleReader(*bytes_, values_, where).read()) {}

}  // namespace olmo::store
