#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/files/json.h"

namespace olmo::eval {

/// What a template's fields are looked up in.
struct TemplateScope {
  const Json* row = nullptr;                                 ///< an object of the data set
  const std::map<std::string, std::string>* made = nullptr;  ///< fields of the definition
  const std::string* option = nullptr;  ///< the field `option`, where there is one
  std::string_view file;                ///< that the row is from, and its place there, for errors
  std::size_t index = 0;
};

/// A filter and its arguments.
struct FilterCall {
  std::string name;
  /// Nothing for text that the filter cannot take.
  std::optional<std::string> (*apply)(std::string_view text,
                                      const std::vector<std::string>& arguments) = nullptr;
  std::vector<std::string> arguments;
};

/// Filters that a task file defines: a name for a chain.
using FilterChains = std::map<std::string, std::vector<FilterCall>>;

/// `strip|replace:'a':'b'`, of the filters that evals/README.md lists. Throws Error(kUsage) "WHERE:
/// …" naming an unknown filter and the nearest one, or one with too few or too many arguments.
std::vector<FilterCall> parse_filters(std::string_view chain, const FilterChains& chains,
                                      const std::string& where);

/// Text with fields: `Question: {question|strip}\nAnswer:`. `{a.b.0}` follows an object's members
/// and a list's places; `{{` and `}}` are braces. Numbers are written in decimal, booleans as true
/// and false.
class Template {
 public:
  /// Throws Error(kUsage) "WHERE: …" for text that is not of this form.
  Template(std::string_view text, const FilterChains& chains, std::string where);

  /// Throws Error(kInput) naming WHERE, the row, and the field that is missing, null, a list or an
  /// object, or that a filter cannot take.
  [[nodiscard]] std::string render(const TemplateScope& scope) const;

  /// Whether it is one field without filters, which may stand for a list.
  [[nodiscard]] bool is_field() const;
  /// Of such a template: each element of the list. Throws as render().
  [[nodiscard]] std::vector<std::string> render_list(const TemplateScope& scope) const;

  /// The columns of the row that it needs; fields that `made` or `option` may take included.
  void add_columns(std::vector<std::string>& columns) const;

 private:
  struct Field {
    std::string name;  ///< as written
    std::vector<std::string> path;
    std::vector<FilterCall> filters;
  };

  void parse_field(std::string_view text, const FilterChains& chains);
  [[nodiscard]] const Json& find(const Field& field, const TemplateScope& scope) const;
  [[nodiscard]] std::string value(const Field& field, const TemplateScope& scope) const;
  [[noreturn]] void refuse(const Field& field, const TemplateScope& scope,
                           const std::string& what) const;

  std::string where_;
  std::vector<std::variant<std::string, Field>> pieces_;
};

}  // namespace olmo::eval
