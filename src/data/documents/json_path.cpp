#include "data/documents/json_path.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/number.h"

namespace olmo::data {
namespace {

using Found = std::vector<const Json*>;

struct Condition;

struct Step {
  enum class Kind { kKey, kIndex, kAll, kFilter } kind = Kind::kKey;
  std::string key;
  std::size_t index = 0;
  std::shared_ptr<const Condition> filter;
};

}  // namespace

struct JsonPath::Path {
  bool from_root = true;  ///< `$`, not `@`
  std::vector<Step> steps;
};

namespace {

struct Operand {
  std::optional<JsonPath::Path> path;
  JsonValue literal;
};

struct Condition {
  enum class Kind { kAny, kAll, kNot, kExists, kCompare } kind = Kind::kExists;
  std::vector<Condition> parts;
  Operand left, right;
  std::string sign;
};

Found follow(const JsonPath::Path& path, const Json& root, const Json& current);

Found values_of(const Operand& operand, const Json& root, const Json& current) {
  return operand.path ? follow(*operand.path, root, current) : Found{&*operand.literal};
}

bool is_equal(const Found& left, const Found& right) {
  return std::ranges::equal(left, right, [](const Json* a, const Json* b) { return *a == *b; });
}

bool is_less(const Found& left, const Found& right) {
  return left.size() == 1 && right.size() == 1 && left.front()->is_number() &&
         right.front()->is_number() && left.front()->get<double>() < right.front()->get<double>();
}

bool compare(const Condition& condition, const Found& left, const Found& right) {
  if (condition.sign == "==") return is_equal(left, right);
  if (condition.sign == "!=") return !is_equal(left, right);
  if (condition.sign == "<") return is_less(left, right);
  if (condition.sign == ">") return is_less(right, left);
  if (is_equal(left, right)) return true;
  return condition.sign == "<=" ? is_less(left, right) : is_less(right, left);
}

bool holds(const Condition& condition, const Json& root, const Json& value);

/// A condition within another looks at the elements of a list, too.
bool holds_within(const Condition& condition, const Json& root, const Json& value) {
  if (!value.is_array()) return holds(condition, root, value);
  return std::ranges::any_of(value,
                             [&](const Json& element) { return holds(condition, root, element); });
}

bool holds(const Condition& condition, const Json& root, const Json& value) {
  const auto within = [&](const Condition& part) { return holds_within(part, root, value); };
  switch (condition.kind) {
    case Condition::Kind::kAny:
      return std::ranges::any_of(condition.parts, within);
    case Condition::Kind::kAll:
      return std::ranges::all_of(condition.parts, within);
    case Condition::Kind::kNot:
      return !within(condition.parts.front());
    case Condition::Kind::kExists:
      return !values_of(condition.left, root, value).empty();
    case Condition::Kind::kCompare:
      break;
  }
  return compare(condition, values_of(condition.left, root, value),
                 values_of(condition.right, root, value));
}

void take_step(const Step& step, const Json& root, const Json& value, Found& found) {
  switch (step.kind) {
    case Step::Kind::kKey:
      if (const auto at = value.is_object() ? value.find(step.key) : value.end();
          value.is_object() && at != value.end())
        found.push_back(&*at);
      return;
    case Step::Kind::kIndex:
      if (value.is_array() && step.index < value.size()) found.push_back(&value[step.index]);
      return;
    case Step::Kind::kAll:
      if (!value.is_structured()) return;
      for (const Json& part : value) found.push_back(&part);
      return;
    case Step::Kind::kFilter:
      if (!value.is_array() && holds(*step.filter, root, value)) found.push_back(&value);
      if (!value.is_array()) return;
      for (const Json& part : value) {
        if (holds(*step.filter, root, part)) found.push_back(&part);
      }
  }
}

Found follow(const JsonPath::Path& path, const Json& root, const Json& current) {
  Found found = {path.from_root ? &root : &current};
  for (const Step& step : path.steps) {
    Found next;
    for (const Json* value : found) take_step(step, root, *value, next);
    found = std::move(next);
  }
  return found;
}

/// Reads a path from left to right.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  JsonPath::Path whole() {
    JsonPath::Path path = read_path();
    skip_blanks();
    if (at_ < text_.size()) fail("`.`, `[` or the end");
    return path;
  }

 private:
  static constexpr int kMaxDepth = 32;

  [[noreturn]] void fail(const std::string& expected) const {
    const std::string got =
        at_ < text_.size() ? "`" + std::string(text_.substr(at_, 12)) + "`" : "the end";
    throw Error(ErrorKind::kUsage, "expected " + expected + " at character " +
                                       std::to_string(at_ + 1) + ", got " + got);
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void require(std::string_view word) {
    if (!take(word)) fail("`" + std::string(word) + "`");
  }

  bool sees(std::string_view characters) {
    skip_blanks();
    return at_ < text_.size() && characters.find(text_[at_]) != characters.npos;
  }

  JsonPath::Path read_path() {
    JsonPath::Path path;
    path.from_root = take("$");
    const bool current = take("@");  // `$@` is `$`
    if (!path.from_root && !current) fail("`$` or `@`");
    while (sees(".[")) path.steps.push_back(read_step());
    return path;
  }

  Step read_step() {
    if (take(".")) {
      if (take("*")) return {.kind = Step::Kind::kAll, .key = {}, .filter = {}};
      if (!sees("[")) return {.kind = Step::Kind::kKey, .key = read_name(), .filter = {}};
    }
    require("[");
    Step step = read_bracketed();
    require("]");
    return step;
  }

  Step read_bracketed() {
    if (take("*")) return {.kind = Step::Kind::kAll, .key = {}, .filter = {}};
    if (take("?")) {
      require("(");
      auto filter = std::make_shared<const Condition>(read_any());
      require(")");
      return {.kind = Step::Kind::kFilter, .key = {}, .filter = std::move(filter)};
    }
    if (sees("'\"")) return {.kind = Step::Kind::kKey, .key = read_string(), .filter = {}};
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    const auto index = parse_number<std::size_t>(text_.substr(begin, at_ - begin));
    if (!index) fail("a key in quotes, an index, `*` or `?(`");
    return {.kind = Step::Kind::kIndex, .key = {}, .index = *index, .filter = {}};
  }

  static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           std::string_view("_-/\\#").find(c) != std::string_view::npos;
  }

  std::string read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    if (at_ == begin) fail("a key");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string read_string() {
    const char quote = text_[at_];
    const auto end = text_.find(quote, at_ + 1);
    if (end == text_.npos) fail("a string with its closing quote");
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    if (const auto escape = inner.find('\\'); escape != inner.npos) {
      at_ += 1 + escape;
      fail("a string without `\\`");
    }
    at_ = end + 1;
    return std::string(inner);
  }

  Condition read_any() { return read_several("||", Condition::Kind::kAny, &Parser::read_all); }
  Condition read_all() { return read_several("&&", Condition::Kind::kAll, &Parser::read_one); }

  Condition read_several(std::string_view between, Condition::Kind kind,
                         Condition (Parser::*read)()) {
    Condition first = (this->*read)();
    while (take(between)) {
      // From the left, as the library nests them.
      Condition both{.kind = kind, .parts = {}, .left = {}, .right = {}, .sign = {}};
      both.parts.push_back(std::move(first));
      both.parts.push_back((this->*read)());
      first = std::move(both);
    }
    return first;
  }

  Condition read_one() {
    if (++depth_ > kMaxDepth) fail("fewer parentheses");
    Condition condition;
    if (take("!")) {
      condition.kind = Condition::Kind::kNot;
      condition.parts.push_back(read_one());
    } else if (take("(")) {
      condition = read_any();
      require(")");
    } else {
      condition = read_comparison();
    }
    --depth_;
    return condition;
  }

  Condition read_comparison() {
    Condition condition;
    condition.left = read_operand();
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(sign)) continue;
      condition.kind = Condition::Kind::kCompare;
      condition.sign = sign;
      condition.right = read_operand();
      break;
    }
    return condition;
  }

  Operand read_operand() {
    if (sees("$@")) return {.path = read_path(), .literal = {}};
    if (sees("'\"")) return {.path = {}, .literal = Json(read_string())};
    for (const auto& [word, value] :
         {std::pair<const char*, Json>{"true", true}, {"false", false}, {"null", nullptr}}) {
      if (take(word)) return {.path = {}, .literal = value};
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view("+-.eE0123456789").find(text_[at_]) != text_.npos)
      ++at_;
    const Json number = Json::parse(text_.substr(begin, at_ - begin), nullptr, false);
    if (!number.is_number()) {
      at_ = begin;
      fail("a path, a number, a string, true, false or null");
    }
    return {.path = {}, .literal = number};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

JsonPath::JsonPath(std::string_view text)
    : path_(std::make_shared<const Path>(Parser(text).whole())) {}

std::vector<const Json*> JsonPath::find(const Json& root) const {
  return follow(*path_, root, root);
}

}  // namespace olmo::data
