#include "eval/load_task.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/files/json.h"
#include "data/arrow/arrow_stream.h"
#include "data/text_reader.h"
#include "eval/rendering.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

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
  for_each_in_parallel(count, [&](std::size_t i) {
    examples[i] = render_example(rendering, rows[i / prompts], rendering.prompts[i % prompts],
                                 shots, name, i / prompts);
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

constexpr std::int64_t kUnconditionalOffset = 1'000'000;
constexpr std::int64_t kMaxOptions = 1000;

struct Request {
  std::int64_t doc_id = 0;
  std::int64_t idx = 0;
  std::optional<std::int64_t> label;
  std::string native_id;
  std::string context;
  std::string continuation;
};

class RequestReader {
 public:
  explicit RequestReader(const std::filesystem::path& path) : path_(path) {}

  std::vector<Example> read() {
    data::LineReader lines(path_);
    for (data::Line line; lines.next(line);) {
      line_ = line.number;
      add(parse(line.bytes));
    }
    finish();
    return std::move(examples_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInput, path_.string() + ":" + std::to_string(line_) + ": " + what);
  }

  [[nodiscard]] Request parse(const std::string& bytes) const {
    // The document that the request was made of is by far the largest part of the line.
    const Json json =
        parse_strict_json(bytes, {.where = path_.string() + ":" + std::to_string(line_),
                                  .left_out = "doc",
                                  .is_object = true});
    const std::string type = text_of(json, "request_type");
    if (type != "loglikelihood" && type != "generate_until_and_loglikelihood") {
      refuse("`request_type` must be loglikelihood, got " + type.substr(0, 80));
    }
    const auto request = json.find("request");
    if (request == json.end() || !request->is_object()) refuse("`request` must be an object");
    Request made;
    made.doc_id = number_of(json, "doc_id");
    made.idx = number_of(json, "idx");
    made.context = text_of(*request, "context");
    made.continuation = text_of(*request, "continuation");
    const auto label = json.find("label");
    if (label != json.end() && label->is_number_integer()) made.label = label->get<std::int64_t>();
    const auto native = json.find("native_id");
    if (native != json.end() && !native->is_null()) {
      made.native_id = native->is_string() ? native->get<std::string>() : native->dump();
    }
    return made;
  }

  [[nodiscard]] std::int64_t number_of(const Json& json, const char* key) const {
    const auto value = json.find(key);
    if (value == json.end() || !value->is_number_unsigned() ||
        value->get<std::uint64_t>() > INT64_MAX) {
      refuse(std::string("`") + key + "` must be a number from 0");
    }
    return value->get<std::int64_t>();
  }

  [[nodiscard]] std::string text_of(const Json& json, const char* key) const {
    const auto value = json.find(key);
    if (value == json.end() || !value->is_string()) {
      refuse(std::string("`") + key + "` must be a text");
    }
    return value->get<std::string>();
  }

  void add(Request request) {
    const bool unconditional = request.doc_id >= kUnconditionalOffset;
    const auto doc_id = request.doc_id - (unconditional ? kUnconditionalOffset : 0);
    const auto [place, is_new] = places_.try_emplace(doc_id, examples_.size());
    if (unconditional) return add_unconditional(request, place->second, is_new);
    if (is_new) {
      examples_.push_back({.doc_id = doc_id,
                           .native_id = std::move(request.native_id),
                           .label = request.label.value_or(0),
                           .options = {}});
    }
    Example& example = examples_[place->second];
    if (request.idx != std::ssize(example.options) || request.idx >= kMaxOptions) {
      refuse("`idx` must be " + std::to_string(example.options.size()) + ", got " +
             std::to_string(request.idx));
    }
    if (!request.label && request.idx > 0) {
      refuse("`label` must be a number where there are several continuations");
    }
    if (request.label.value_or(0) != example.label)
      refuse("`label` is not that of the document's first line");
    example.options.push_back({.context = std::move(request.context),
                               .continuation = std::move(request.continuation),
                               .unconditional = std::nullopt});
  }

  void add_unconditional(const Request& request, std::size_t place, bool is_new) {
    const auto idx = static_cast<std::size_t>(request.idx);
    if (is_new || idx >= examples_[place].options.size()) {
      refuse("an unconditional request comes before the request that it belongs to");
    }
    Option& option = examples_[place].options[idx];
    if (option.continuation != request.continuation) {
      refuse(
          "an unconditional request has another continuation than the request that it belongs to");
    }
    option.unconditional = request.context;
  }

  void finish() const {
    for (const auto& example : examples_) {
      if (example.label < 0 || static_cast<std::size_t>(example.label) >= example.options.size()) {
        throw Error(ErrorKind::kInput,
                    path_.string() + ": document " + std::to_string(example.doc_id) + " has " +
                        std::to_string(example.options.size()) + " continuations and the label " +
                        std::to_string(example.label));
      }
    }
  }

  std::filesystem::path path_;
  std::uint64_t line_ = 0;
  std::vector<Example> examples_;
  std::unordered_map<std::int64_t, std::size_t> places_;
};

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

std::vector<Example> read_request_file(const std::filesystem::path& path) {
  return RequestReader(path).read();
}

}  // namespace olmo::eval
