#include "core/error.h"
#include "eval/load_task.h"
#include "eval/task_catalog.h"
#include "fuzz/target.h"

namespace olmo::fuzz {
namespace {

namespace fs = std::filesystem;

void parse_requests(const std::string& input) {
  (void)eval::read_request_file(file_of(input, "requests.jsonl"));
}

std::vector<std::string> request_seeds() {
  return {
      "{\"request_type\": \"loglikelihood\", \"doc\": {\"id\": \"a\", \"query\": \"q\"}, "
      "\"request\": "
      "{\"context\": \"q\", \"continuation\": \" a\"}, \"idx\": 0, \"task_name\": \"t\", "
      "\"doc_id\": 0, \"native_id\": \"n\", \"label\": 0}\n{\"request_type\": \"loglikelihood\", "
      "\"doc\": {\"id\": \"a\"}, \"request\": {\"context\": \"q\", \"continuation\": \" b\"}, "
      "\"idx\": 1, \"task_name\": \"t\", \"doc_id\": 0, \"native_id\": \"n\", \"label\": 0}\n"};
}

/// A definition as a file of the folder that --definitions names, resolved with every task of it.
void parse_definition(const std::string& input, const std::string& kind) {
  const fs::path folder = scratch_folder() / ("definitions-" + kind);
  fs::create_directories(folder / kind);
  fs::create_directories(scratch_folder() / "no_data");
  file_of(input, "definitions-" + kind + "/" + kind + "/fuzzed.json");
  const auto catalog = eval::load_catalog(folder);
  for (const std::string& name : {std::string("fuzzed"), std::string("fuzzed_bpb")}) {
    try {
      (void)catalog.resolve({&name, 1}, "olmo", scratch_folder() / "no_data");
    } catch (const Error&) {  // data that is not here, most often
    }
  }
}

void parse_task(const std::string& input) { parse_definition(input, "tasks"); }
void parse_suite(const std::string& input) { parse_definition(input, "suites"); }

}  // namespace

std::vector<Target> eval_targets() {
  return {{"requests", 1 << 12, parse_requests, request_seeds},
          {"task", 1 << 13, parse_task, [] { return files_below("evals/tasks", ".json"); }},
          {"suite", 1 << 13, parse_suite, [] { return files_below("evals/suites", ".json"); }}};
}

}  // namespace olmo::fuzz
