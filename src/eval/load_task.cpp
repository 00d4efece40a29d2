#include <algorithm>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "data/arrow/arrow_stream.h"
#include "data/text_reader.h"
#include "eval/rendering.h"
#include "eval/request_file.h"
#include "eval/task.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRowsPerThread = 64;  // at least; a row takes microseconds

std::vector<Json> read_lines(const fs::path& file) {
  std::vector<Json> rows;
  data::LineReader lines(file);
  for (data::Line line; lines.next(line);) {
    rows.push_back(parse_strict_json(
        line.bytes,
        {.where = file.string() + ":" + std::to_string(line.number), .is_object = true}));
  }
  return rows;
}

std::vector<Json> read_rows(const fs::path& file, const std::vector<std::string>& columns) {
  return file.extension() == ".arrow" ? data::read_arrow_stream(file, columns) : read_lines(file);
}

/// The instances of a file, one a row and prompt.
std::vector<Example> render_file(const Rendering& rendering, const fs::path& file,
                                 const std::vector<std::string>& shots, std::size_t limit) {
  const auto rows = read_rows(file, rendering.columns);
  const std::size_t prompts = rendering.prompts.size();
  const std::size_t count = std::min(rows.size() * prompts, limit);
  std::vector<Example> examples(count);
  const std::string name = file.string();
  at::parallel_for(
      0, static_cast<std::int64_t>(count), kRowsPerThread,
      [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          examples[i] = render_example(rendering, rows[i / prompts], rendering.prompts[i % prompts],
                                       shots, name, i / prompts);
        }
      });
  return examples;
}

std::vector<std::string> read_shots(const Rendering& rendering,
                                    const std::vector<fs::path>& files) {
  std::vector<Json> rows;
  for (const auto& file : files) {
    for (auto& row : read_rows(file, rendering.columns)) rows.push_back(std::move(row));
  }
  return render_shots(rendering, rows, files.empty() ? "" : files[0].string());
}

/// The right continuation of each instance as its only one.
void keep_answers(std::vector<Example>& examples) {
  for (auto& example : examples) {
    Option answer = std::move(example.options[static_cast<std::size_t>(example.label)]);
    example.options = {std::move(answer)};
    example.label = 0;
  }
}

}  // namespace

LoadedTask load_task(const Task& task, std::optional<std::int64_t> limit) {
  const Json keys = Json::parse(task.definition);
  const auto most = static_cast<std::size_t>(limit.value_or(INT64_MAX));
  LoadedTask loaded{.task = task, .examples = {}};
  auto& examples = loaded.examples;
  if (keys.value("requests", false)) {
    examples = read_request_file(task.sources.at(0).files.at(0));
    if (examples.size() > most) examples.resize(most);
    if (keys.value("answers_only", false)) keep_answers(examples);
    return loaded;
  }
  const Rendering rendering = compile_rendering(keys, task.origin);
  for (const auto& source : task.sources) {
    const auto shots = read_shots(rendering, source.shots);
    for (const auto& file : source.files) {
      if (examples.size() >= most) break;
      auto more = render_file(rendering, file, shots, most - examples.size());
      std::move(more.begin(), more.end(), std::back_inserter(examples));
    }
  }
  for (std::size_t i = 0; i < examples.size(); ++i)
    examples[i].doc_id = static_cast<std::int64_t>(i);
  return loaded;
}

}  // namespace olmo::eval
