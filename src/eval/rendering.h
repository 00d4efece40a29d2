#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/json.h"
#include "eval/task.h"
#include "eval/template.h"

namespace olmo::eval {

/// Several texts: the elements of a list of the row, or one template each.
struct TextList {
  std::optional<Template> list;
  std::vector<Template> each;
};

/// Which option is right: a fixed one, or a value that is its place, or whose place in `in` counts.
struct LabelRule {
  std::optional<std::int64_t> fixed;
  std::optional<Template> value;
  std::map<std::string, std::string> aliases;  ///< a value that stands for another
  std::optional<TextList> in;
};

/// One of the forms in which a row is asked.
struct Prompt {
  std::optional<Template> instruction;  ///< comes first
  std::size_t shots = 0;                ///< worked examples that follow it
};

/// How a row of a data set becomes an instance: the compiled keys of a task file
/// (evals/README.md).
struct Rendering {
  std::vector<std::pair<std::string, Template>> fields;
  std::optional<Template> native_id;
  TextList options;
  Template context;
  Template continuation;
  std::vector<Template> unconditional;  ///< the first that is not empty; none: there is no prompt
  LabelRule label;
  std::vector<Prompt> prompts;
  std::string separator;             ///< after each worked example
  bool answers_only = false;         ///< the right option is the only one
  std::vector<std::string> columns;  ///< of the rows; all if empty
};

/// Compiles the keys of a Task::definition. Throws Error(kUsage) "ORIGIN: `KEY`: …" for what is not
/// of the form that evals/README.md describes.
Rendering compile_rendering(const Json& keys, const std::string& origin);

/// The worked examples of `rows`: element n is the text of the first n. As many as the prompts need
/// and the rows give.
std::vector<std::string> render_shots(const Rendering& rendering, const std::vector<Json>& rows,
                                      std::string_view file);

/// The row's instance under a prompt, without doc_id. Throws Error(kInput) naming key, file, row
/// and field for a row that the definition does not fit.
Example render_example(const Rendering& rendering, const Json& row, const Prompt& prompt,
                       const std::vector<std::string>& shots, std::string_view file,
                       std::size_t index);

}  // namespace olmo::eval
