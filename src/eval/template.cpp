#include "eval/template.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/number.h"
#include "core/text/text.h"
#include "data/python_text.h"

namespace olmo::eval {
namespace {

using Arguments = std::vector<std::string>;
using Filtered = std::optional<std::string>;

Filtered lower_first(std::string_view text, const Arguments&) {
  if (text.empty()) return "";
  const auto first = decode_valid_utf8(text.data()).size;
  return data::lower(text.substr(0, first)) + std::string(text.substr(first));
}

Filtered drop_last(std::string_view text, const Arguments&) {
  if (!text.empty()) text.remove_suffix(last_code_point(text).size);
  return std::string(text);
}

Filtered before(std::string_view text, const Arguments& mark) {
  const auto at = text.find(mark[0]);
  if (at == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(0, at));
}

Filtered after(std::string_view text, const Arguments& mark) {
  const auto at = text.find(mark[0]);
  if (at == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(at + mark[0].size()));
}

Filtered map_value(std::string_view text, const Arguments& pairs) {
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (text == pairs[i]) return pairs[i + 1];
  }
  return std::nullopt;
}

struct FilterRow {
  std::string_view name;
  std::size_t arguments;  ///< or kPairs
  Filtered (*apply)(std::string_view, const Arguments&);
};
constexpr std::size_t kPairs = 99;  // any even number above 0

constexpr FilterRow kFilters[] = {
    {"strip", 0, [](auto text, auto&) -> Filtered { return std::string(data::strip(text)); }},
    {"lstrip", 0, [](auto text, auto&) -> Filtered { return std::string(data::lstrip(text)); }},
    {"rstrip", 0, [](auto text, auto&) -> Filtered { return std::string(data::rstrip(text)); }},
    {"lower", 0, [](auto text, auto&) -> Filtered { return data::lower(text); }},
    {"lower_first", 0, lower_first},
    {"capitalize", 0, [](auto text, auto&) -> Filtered { return data::capitalize(text); }},
    {"replace", 2,
     [](auto text, auto& with) -> Filtered { return data::replace(text, with[0], with[1]); }},
    {"remove_brackets", 0,
     [](auto text, auto&) -> Filtered { return data::remove_brackets(text); }},
    {"before", 1, before},
    {"after", 1, after},
    {"last_word", 0,
     [](auto text, auto&) -> Filtered { return std::string(text.substr(text.rfind(' ') + 1)); }},
    {"drop_last", 0, drop_last},
    {"map", kPairs, map_value},
};

/// Cuts `text` at each `mark` outside of quotes.
std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\'') quoted = !quoted;
    if (text[at] != mark || quoted) continue;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// The text between quotes, in which '' is a quote.
std::string unquote(std::string_view text, const std::string& where) {
  if (text.size() < 2 || text.front() != '\'' || text.back() != '\'') {
    throw Error(
        ErrorKind::kUsage,
        where + ": an argument of a filter stands in single quotes, got " + std::string(text));
  }
  return data::replace(text.substr(1, text.size() - 2), "''", "'");
}

void check_arguments(const FilterRow& row, const Arguments& arguments, const std::string& where) {
  const bool pairs = row.arguments == kPairs;
  const bool right =
      pairs ? !arguments.empty() && arguments.size() % 2 == 0 : arguments.size() == row.arguments;
  const std::string wanted =
      pairs ? "pairs of arguments" : std::to_string(row.arguments) + " arguments";
  if (!right) {
    throw Error(ErrorKind::kUsage, where + ": the filter `" + std::string(row.name) + "` takes " +
                                       wanted + ", got " + std::to_string(arguments.size()));
  }
  if ((row.arguments == 1 || row.arguments == 2) && arguments[0].empty()) {
    throw Error(ErrorKind::kUsage,
                where + ": the filter `" + std::string(row.name) + "` has nothing to look for");
  }
}

[[noreturn]] void unknown_filter(std::string_view name, const FilterChains& chains,
                                 const std::string& where) {
  std::vector<std::string> known;
  for (const auto& row : kFilters) known.emplace_back(row.name);
  for (const auto& [chain, calls] : chains) known.push_back(chain);
  const auto close = nearest(name, known);
  throw Error(ErrorKind::kUsage, where + ": there is no filter `" + std::string(name) + "`" +
                                     (close ? "; is `" + *close + "` meant?" : ""));
}

/// Nothing for null, lists and objects.
std::optional<std::string> text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

}  // namespace

std::vector<FilterCall> parse_filters(std::string_view chain, const FilterChains& chains,
                                      const std::string& where) {
  std::vector<FilterCall> calls;
  for (const auto part : split(chain, '|')) {
    const auto words = split(part, ':');
    const auto own = chains.find(std::string(words[0]));
    if (own != chains.end() && words.size() == 1) {
      calls.insert(calls.end(), own->second.begin(), own->second.end());
      continue;
    }
    const auto row = std::find_if(std::begin(kFilters), std::end(kFilters),
                                  [&](const FilterRow& one) { return one.name == words[0]; });
    if (row == std::end(kFilters)) unknown_filter(words[0], chains, where);
    FilterCall call{.name = std::string(row->name), .apply = row->apply, .arguments = {}};
    for (std::size_t i = 1; i < words.size(); ++i)
      call.arguments.push_back(unquote(words[i], where));
    check_arguments(*row, call.arguments, where);
    calls.push_back(std::move(call));
  }
  return calls;
}

Template::Template(std::string_view text, const FilterChains& chains, std::string where)
    : where_(std::move(where)) {
  std::string literal;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool twice = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && twice) {
      literal.push_back(c);
      ++at;
    } else if (c == '{') {
      bool quoted = false;
      std::size_t end = at + 1;
      while (end < text.size() && (quoted || text[end] != '}')) quoted ^= text[end++] == '\'';
      if (end == text.size()) throw Error(ErrorKind::kUsage, where_ + ": a `{` is not closed");
      if (!literal.empty()) pieces_.emplace_back(std::exchange(literal, ""));
      parse_field(text.substr(at + 1, end - at - 1), chains);
      at = end;
    } else if (c == '}') {
      throw Error(ErrorKind::kUsage, where_ + ": a `}` without its `{`: write `}}` for a brace");
    } else {
      literal.push_back(c);
    }
  }
  if (!literal.empty()) pieces_.emplace_back(std::move(literal));
}

void Template::parse_field(std::string_view text, const FilterChains& chains) {
  const auto bar = std::min(text.find('|'), text.size());
  Field field{.name = std::string(text.substr(0, bar)), .path = {}, .filters = {}};
  for (const auto part : split(field.name, '.')) {
    if (part.empty())
      throw Error(ErrorKind::kUsage, where_ + ": `{" + std::string(text) + "}` names no field");
    field.path.emplace_back(part);
  }
  if (bar < text.size()) field.filters = parse_filters(text.substr(bar + 1), chains, where_);
  pieces_.emplace_back(std::move(field));
}

void Template::refuse(const Field& field, const TemplateScope& scope,
                      const std::string& what) const {
  throw Error(ErrorKind::kInput, where_ + ": " + std::string(scope.file) + ", row " +
                                     std::to_string(scope.index) + ": field `" + field.name + "` " +
                                     what);
}

const Json& Template::find(const Field& field, const TemplateScope& scope) const {
  const Json* value = scope.row;
  for (const auto& part : field.path) {
    if (value->is_array()) {
      const auto index = parse_number<std::size_t>(part);
      if (!index || *index >= value->size()) {
        refuse(field, scope,
               "is not there: a list has " + std::to_string(value->size()) + " elements");
      }
      value = &(*value)[*index];
    } else {
      if (!value->is_object()) refuse(field, scope, "is not there");
      const auto found = value->find(part);
      if (found == value->end()) refuse(field, scope, "is not there");
      value = &*found;
    }
  }
  return *value;
}

std::string Template::value(const Field& field, const TemplateScope& scope) const {
  if (field.path.size() == 1) {
    if (scope.option != nullptr && field.name == "option") return *scope.option;
    if (scope.made != nullptr) {
      const auto made = scope.made->find(field.name);
      if (made != scope.made->end()) return made->second;
    }
  }
  const Json& value = find(field, scope);
  auto text = text_of(value);
  if (!text)
    refuse(field, scope, "is " + std::string(value.type_name()) + ", expected text or a number");
  return *std::move(text);
}

std::string Template::render(const TemplateScope& scope) const {
  std::string out;
  for (const auto& piece : pieces_) {
    if (const auto* literal = std::get_if<std::string>(&piece)) {
      out += *literal;
      continue;
    }
    const auto& field = std::get<Field>(piece);
    std::string text = value(field, scope);
    for (const auto& filter : field.filters) {
      auto filtered = filter.apply(text, filter.arguments);
      if (!filtered) {
        refuse(field, scope,
               "holds `" + text.substr(0, 80) + "`, which the filter `" + filter.name +
                   "` cannot take");
      }
      text = *std::move(filtered);
    }
    out += text;
  }
  return out;
}

bool Template::is_field() const {
  return pieces_.size() == 1 && std::holds_alternative<Field>(pieces_[0]) &&
         std::get<Field>(pieces_[0]).filters.empty();
}

std::vector<std::string> Template::render_list(const TemplateScope& scope) const {
  const auto& field = std::get<Field>(pieces_.at(0));
  const Json& list = find(field, scope);
  if (!list.is_array())
    refuse(field, scope, "is " + std::string(list.type_name()) + ", expected a list");
  std::vector<std::string> texts;
  for (const auto& element : list) {
    auto text = text_of(element);
    if (!text) refuse(field, scope, "has an element that is " + std::string(element.type_name()));
    texts.push_back(*std::move(text));
  }
  return texts;
}

void Template::add_columns(std::vector<std::string>& columns) const {
  for (const auto& piece : pieces_) {
    if (const auto* field = std::get_if<Field>(&piece)) columns.push_back(field->path[0]);
  }
}

}  // namespace olmo::eval
