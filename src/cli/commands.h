// The commands of the program, each in the file of its name, and those of their commands that have
// a file of their own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/interface/command.h"

namespace olmo::cli {

// `group`: the title under which the overview lists the command.
void add_doctor(const Command& program, const char* group);
void add_data(const Command& program, const char* group);
void add_train(const Command& program, const char* group);
void add_audit(const Command& program, const char* group);
void add_eval(const Command& program, const char* group);
void add_runs(const Command& program, const char* group);
void add_serve(const Command& program, const char* group);
void add_report(const Command& program, const char* group);
void add_checkpoint(const Command& program, const char* group);
// `facts`: of the whole program, once every command was added.
void add_completion(const Command& program, const char* group,
                    const std::function<CommandFacts()>& facts);
void add_man(const Command& program, const char* group, const std::function<CommandFacts()>& facts);

/// What `train --help KEY`, `help KEY` and `train --print-schema` print; nothing for other words.
std::optional<std::string> config_reference(const std::vector<std::string>& words);

/// What `--version` and `--version --json` print; nothing for other words.
std::optional<std::string> version_reference(const std::vector<std::string>& words);

void add_data_fetch(const Command& data);
void add_data_corpus(const Command& data);
void add_data_dedup(const Command& data);
void add_data_mix(const Command& data);
void add_data_tokenize(const Command& data);
void add_data_inspect(const Command& data);
void add_data_stats(const Command& data);
void add_eval_list(const Command& eval);
void add_eval_show(const Command& eval);
void add_eval_diff(const Command& eval);
void add_report_plan(const Command& report);
void add_runs_list(const Command& runs);
void add_runs_diff(const Command& runs);
void add_runs_export(const Command& runs);
void add_runs_import(const Command& runs);
void add_runs_watch(const Command& runs);
void add_checkpoint_import(const Command& checkpoint);
void add_checkpoint_export(const Command& checkpoint);

/// Parses argv, runs the subcommand and returns its exit code. Throws Error for what ends the
/// command.
int run(int argc, char** argv);

}  // namespace olmo::cli
