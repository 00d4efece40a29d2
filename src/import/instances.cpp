#include "import/instances.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/evaluation_rows.h"
#include "core/files/input_file.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "core/text/text.h"
#include "import/text.h"

namespace olmo::import {
namespace {

/// One line of a file; failures name it.
struct Source {
  const std::string& file;
  std::int64_t line = 0;

  [[noreturn]] void fail(const std::string& what) const { fail_at_line(file, line, what); }

  [[nodiscard]] const Json& member(const Json& object, const std::string& name) const {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || found == object.end()) fail("has no " + in_quotes(name));
    return *found;
  }
  [[nodiscard]] std::int64_t count(const Json& object, const std::string& name) const {
    const Json& value = member(object, name);
    // Beyond this no instance or length is plausible.
    constexpr double kMost = 1e15;
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= kMost))
      fail(in_quotes(name) + " must be a number from 0, got " + in_quotes(json_text(value)));
    return value.get<std::int64_t>();
  }
  /// lm-eval writes numbers of `resps` as strings.
  [[nodiscard]] double finite(const Json& value, const std::string& name) const {
    std::optional<double> number;
    if (value.is_number()) number = value.get<double>();
    if (value.is_string()) number = parse_log_number(value.get_ref<const std::string&>());
    if (!number || !std::isfinite(*number))
      fail(name + " must be a finite number, got " + in_quotes(json_text(value)));
    return *number;
  }
};

bool is_true(const Json& value) { return value == Json(true) || value == Json("True"); }

std::string text_or_empty(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

// --- lm-eval ---

struct Request {
  std::string context, continuation;
};

/// `arguments` is a list of [context, continuation], since 0.4.3 an object of gen_args_I with arg_0
/// and arg_1.
Request lm_eval_request(const Source& source, const Json& arguments, std::size_t index) {
  const Json* context = nullptr;
  const Json* continuation = nullptr;
  if (arguments.is_array() && arguments[index].is_array() && arguments[index].size() == 2) {
    context = &arguments[index][0];
    continuation = &arguments[index][1];
  } else {
    const Json& request = source.member(arguments, "gen_args_" + std::to_string(index));
    context = &source.member(request, "arg_0");
    continuation = &source.member(request, "arg_1");
  }
  if (!context->is_string() || !continuation->is_string())
    source.fail("a request must be two texts, context and continuation");
  return {context->get<std::string>(), continuation->get<std::string>()};
}

/// [[[logprob, is_greedy]], …], or without the inner list.
const Json& lm_eval_response(const Source& source, const Json& responses, std::size_t index) {
  const Json* response = &responses[index];
  if (response->is_array() && response->size() == 1) response = &(*response)[0];
  if (!response->is_array() || response->size() != 2)
    source.fail("is of no multiple-choice task: a response must be [logprob, is_greedy], got " +
                in_quotes(json_text(*response)));
  return *response;
}

/// For acc_mutual_info lm-eval asks for every option again, after nothing. Those are no options.
std::size_t count_options(const std::vector<Request>& requests) {
  const std::size_t half = requests.size() / 2;
  if (half < 2 || requests.size() % 2 != 0) return requests.size();
  for (std::size_t i = 0; i < half; ++i) {
    const Request& again = requests[half + i];
    if (requests[i].context.empty() || !again.context.empty() ||
        without_leading_space(again.continuation) !=
            without_leading_space(requests[i].continuation))
      return requests.size();
  }
  return half;
}

/// `target` is the index of the right option or its text.
std::optional<std::int64_t> named_option(const std::string& target,
                                         const std::vector<std::string>& continuations) {
  const auto number = parse_log_number(target);
  if (number && *number == std::floor(*number) && *number >= 0 &&
      *number < static_cast<double>(continuations.size()))
    return static_cast<std::int64_t>(*number);
  for (std::size_t i = 0; i < continuations.size(); ++i) {
    if (without_leading_space(continuations[i]) == without_leading_space(target))
      return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

/// Where options differ in their context (winogrande) `target` does not tell, and `acc` has to.
std::int64_t lm_eval_label(const Source& source, const Json& sample,
                           const std::vector<std::string>& continuations,
                           const std::vector<double>& logprobs) {
  const Json& target = source.member(sample, "target");
  const std::string text = target.is_string() ? target.get<std::string>() : json_text(target);
  const auto found = sample.find("acc");
  std::optional<double> acc;
  if (found != sample.end() && found->is_number()) acc = found->get<double>();
  const auto best = std::max_element(logprobs.begin(), logprobs.end()) - logprobs.begin();
  if (std::set<std::string>(continuations.begin(), continuations.end()).size() > 1) {
    if (const auto label = named_option(text, continuations)) {
      const double expected = *label == best ? 1 : 0;
      if (acc && *acc != expected)
        source.fail("which option is right cannot be told: by target " + in_quotes(text) +
                    " acc would be " + (expected == 1 ? "1" : "0"));
      return *label;
    }
  } else if (acc) {
    if (*acc == 1) return best;
    if (*acc == 0 && continuations.size() == 2) return 1 - best;
  }
  source.fail("which option is right cannot be told from target " + in_quotes(text));
}

void read_lm_eval(const Source& source, const Json& sample, InstanceFile& file) {
  const Json& arguments = source.member(sample, "arguments");
  const Json& responses =
      source.member(sample, sample.contains("resps") ? "resps" : "filtered_resps");
  if (!responses.is_array() || arguments.size() != responses.size())
    source.fail("must have as many responses as arguments");
  if (responses.size() < 2) source.fail("is of no multiple-choice task: it has one request");
  std::vector<Request> requests;
  for (std::size_t i = 0; i < responses.size(); ++i)
    requests.push_back(lm_eval_request(source, arguments, i));
  const std::size_t options = count_options(requests);
  const auto logprob = [&](std::size_t i) {
    return source.finite(lm_eval_response(source, responses, i)[0], "a logprob");
  };
  std::vector<std::string> continuations;
  std::vector<double> logprobs;
  const std::size_t first = file.rows.size();
  for (std::size_t i = 0; i < options; ++i) {
    const auto& [context, continuation] = requests[i];
    const auto text = without_leading_space(continuation);
    OptionRow row;
    row.doc_id = source.count(sample, "doc_id");
    row.cont_id = static_cast<std::int64_t>(i);
    row.cont_chars = count_code_points(text);
    row.cont_bytes = static_cast<std::int64_t>(text.size());
    row.request_hash = request_hash(context, continuation);
    row.logprob = logprob(i);
    row.is_greedy = is_true(lm_eval_response(source, responses, i)[1]);
    if (options < requests.size()) row.unconditional_logprob = logprob(options + i);
    continuations.push_back(continuation);
    logprobs.push_back(row.logprob);
    file.rows.push_back(std::move(row));
  }
  const auto label = lm_eval_label(source, sample, continuations, logprobs);
  for (std::size_t i = first; i < file.rows.size(); ++i) file.rows[i].label = label;
}

// --- oe-eval ---

void read_oe_eval(const Source& source, const Json& prediction, InstanceFile& file) {
  const Json& outputs = source.member(prediction, "model_output");
  if (!outputs.is_array() || outputs.size() < 2)
    source.fail("is of no multiple-choice task: 'model_output' must list two options or more");
  const auto options = static_cast<std::int64_t>(outputs.size());
  const auto label = source.count(prediction, "label");
  if (label >= options)
    source.fail("label must be one of " + std::to_string(options) + " options, got " +
                std::to_string(label));
  for (std::int64_t i = 0; i < options; ++i) {
    const Json& output = outputs[static_cast<std::size_t>(i)];
    OptionRow row;
    row.doc_id = source.count(prediction, "doc_id");
    row.cont_id = i;
    row.native_id = text_or_empty(prediction, "native_id");
    row.label = label;
    row.logprob = source.finite(source.member(output, "sum_logits"), "'sum_logits'");
    if (output.contains("num_tokens")) row.cont_tokens = source.count(output, "num_tokens");
    if (output.contains("num_chars")) row.cont_chars = source.count(output, "num_chars");
    if (output.contains("num_tokens_all"))
      row.ctx_tokens =
          std::max<std::int64_t>(0, source.count(output, "num_tokens_all") - row.cont_tokens);
    if (output.contains("is_greedy")) row.is_greedy = is_true(output["is_greedy"]);
    if (output.contains("sum_logits_uncond"))
      row.unconditional_logprob = source.finite(output["sum_logits_uncond"], "'sum_logits_uncond'");
    file.rows.push_back(std::move(row));
  }
}

// --- both ---

/// `samples_TASK_2026-01-31T….jsonl`, `task-NNN-TASK-predictions.jsonl`; else the name without its
/// ending.
std::string task_of(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  constexpr std::string_view kSamples = "samples_", kPredictions = "-predictions", kTask = "task-";
  if (name.starts_with(kSamples)) {
    name.erase(0, kSamples.size());
    const auto date = name.rfind('_');
    if (date != std::string::npos && name.find_first_of("0123456789", date) == date + 1 &&
        name.find('T', date) != std::string::npos)
      name.erase(date);
  } else if (name.starts_with(kTask) && name.ends_with(kPredictions)) {
    name.erase(name.size() - kPredictions.size());
    const auto number = name.find_first_not_of("0123456789", kTask.size());
    name.erase(0, number != std::string::npos && name[number] == '-' ? number + 1 : kTask.size());
  }
  return name;
}

/// What the lines before have told.
struct Seen {
  std::set<std::int64_t> doc_ids;
  std::optional<std::string> filter;
};

/// A task of lm-eval's with several filters has each instance once for each.
void check_filter(const Source& source, const Json& line, Seen& seen) {
  const std::string filter = text_or_empty(line, "filter");
  if (!seen.filter) seen.filter = filter;
  if (*seen.filter != filter)
    source.fail("is of filter " + in_quotes(filter) + ", the lines before of " +
                in_quotes(*seen.filter) + ": import a file with the lines of one of them");
}

void read_line(const Source& source, const Json& line, InstanceFile& file, Seen& seen) {
  const bool oe = line.contains("model_output");
  const std::string convention = oe ? "oe" : "lm-eval";
  if (!file.convention.empty() && file.convention != convention)
    source.fail("has another format than the lines before");
  file.convention = convention;
  check_filter(source, line, seen);
  const auto first = file.rows.size();
  oe ? read_oe_eval(source, line, file) : read_lm_eval(source, line, file);
  constexpr std::size_t kMostOptions = 1000;
  if (file.rows.size() - first > kMostOptions)
    source.fail("has more than " + std::to_string(kMostOptions) + " options");
  const auto doc_id = file.rows[first].doc_id;
  if (!seen.doc_ids.insert(doc_id).second)
    source.fail("doc_id " + std::to_string(doc_id) + " occurs twice");
  for (std::size_t i = first; i < file.rows.size(); ++i) file.rows[i].task = file.task;
  ++file.instances;
}

}  // namespace

InstanceFile read_instance_file(const std::filesystem::path& path) {
  const std::string text = read_file(path);  // no map: it may be cut while it is read
  InstanceFile file;
  file.path = path.string();
  file.bytes = static_cast<std::int64_t>(text.size());
  file.sha256 = sha256(text).hex();
  file.task = task_of(path);
  refuse_summary(text, file.path);
  Seen seen;
  for (Lines lines(text); lines.next();) {
    if (trimmed(lines.line()).empty()) continue;
    const Source source{file.path, lines.number()};
    read_line(source, parse_log_json(lines.line(), file.path, lines.number()), file, seen);
  }
  if (file.instances == 0) throw Error(ErrorKind::kInput, file.path + ": holds no instance");
  return file;
}

void rank_instances(InstanceFile& file, ImportMetric metric) {
  std::vector<double> scores;
  for (std::size_t begin = 0; begin < file.rows.size();) {
    std::size_t end = begin;
    scores.clear();
    while (end < file.rows.size() && file.rows[end].doc_id == file.rows[begin].doc_id) {
      const OptionRow& row = file.rows[end++];
      if (metric == ImportMetric::kAccNorm && row.cont_chars == 0)
        throw Error(ErrorKind::kInput, file.path + ": doc_id " + std::to_string(row.doc_id) +
                                           ": has a continuation of no known length, by which "
                                           "acc_norm would divide: use --metric acc");
      scores.push_back(metric == ImportMetric::kAcc
                           ? row.logprob
                           : row.logprob / static_cast<double>(row.cont_chars));
    }
    rank_by(scores, std::span(file.rows).subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace olmo::import
