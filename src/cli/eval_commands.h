// The parts of `olmo-harness eval` that need no model.
#pragma once

#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace olmo::cli {

/// `eval show RUN TASK DOC_ID`: prompt, continuations, scores and choice of one instance.
void add_eval_show(CLI::App& eval, int& exit_code);
/// `eval diff RUN_A RUN_B`: two evaluations, instance by instance.
void add_eval_diff(CLI::App& eval, int& exit_code);

/// `eval --list`.
void list_definitions(const std::string& definitions, bool json);
/// `eval --rescore RUN`.
void rescore(const std::string& run, const std::filesystem::path& instances, bool json);

}  // namespace olmo::cli
