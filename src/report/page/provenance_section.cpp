#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

using Json = nlohmann::json;
using Facts = std::map<std::string, std::string>;

std::string scalar_text(const Json& json) {
  if (json.is_string()) return json.get_ref<const std::string&>();
  return json.is_structured() ? "…" : json_text(json);
}

/// Lists of plain values are one text.
std::string leaf_text(const Json& json) {
  if (!json.is_array()) return scalar_text(json);
  std::string text;
  for (const Json& item : json) {
    if (text.size() > kShownText) break;
    text += (text.empty() ? "" : ", ") + scalar_text(item);
  }
  return text;
}

void add_record(const std::string& name, const std::string& text, Facts& facts) {
  if (text.empty()) return;
  const Json json = recorded_json(text);
  if (json.is_discarded()) {
    facts[name] = "(not readable)";
    return;
  }
  for_each_leaf(json, name, [&](const std::string& place, const Json& value) {
    if (!value.is_object() && facts.size() < 4 * kShownRows)
      facts[clip(place)] = clip(leaf_text(value));
  });
}

/// Of the last attempt, or of the evaluation where there is no run.
Facts facts_of(const Side& side) {
  Facts facts;
  if (side.run && !side.run->attempts.empty()) {
    const store::AttemptRecord& last = side.run->attempts.back();
    add_record("build", last.build, facts);
    add_record("host", last.environment, facts);
    add_record("policy", last.policy, facts);
    if (!last.command_line.empty()) facts["command"] = clip(last.command_line);
  } else if (side.evaluation) {
    add_record("build", side.evaluation->build, facts);
    add_record("host", side.evaluation->environment, facts);
    add_record("policy", side.evaluation->policy, facts);
  }
  return facts;
}

std::vector<Column> with_sides(const char* first, std::span<const NamedSide> sides) {
  std::vector<Column> columns = {{first, false}};
  for (const NamedSide& side : sides) columns.push_back({std::string(1, side.letter), false});
  return columns;
}

std::string facts_table(std::span<const NamedSide> sides) {
  std::vector<Facts> facts;
  std::map<std::string, bool> names;
  for (const NamedSide& side : sides) {
    facts.push_back(facts_of(*side.side));
    for (const auto& [name, value] : facts.back()) names[name] = true;
  }
  Table table(with_sides("Fact", sides));
  for (const auto& [name, unused] : names) {
    std::vector<std::string> cells = {shown(name, 120)};
    bool differs = false;
    for (const Facts& of_side : facts) {
      const auto found = of_side.find(name);
      cells.push_back(found == of_side.end() ? element("span", "absent", "not recorded")
                                             : code(found->second));
      differs = differs || cells.back() != cells.at(1);
    }
    table.row(cells, differs ? "differs" : "");
  }
  if (table.empty()) return note("No host, build or policy is recorded.");
  return folded("Hosts, builds and policies (differences are shaded)", table.html());
}

std::string attempts_table(std::span<const NamedSide> sides) {
  Table table({{"Attempt", false},
               {"Side", false},
               {"From step", true},
               {"Started", false},
               {"Ended", false},
               {"Outcome", false},
               {"Resumed from", false}});
  for (const NamedSide& side : sides) {
    if (!side.side->run) continue;
    for (const store::AttemptRecord& attempt : side.side->run->attempts)
      table.row({count(attempt.attempt), side_mark(side.letter), count(attempt.start_step),
                 shown(attempt.started_utc, 40), shown(attempt.ended_utc, 40),
                 shown(attempt.outcome, 80), shown(attempt.resumed_from, 160)});
  }
  return table.empty() ? std::string() : folded("Attempts", table.html());
}

std::string inputs_table(std::span<const NamedSide> sides) {
  Table table(
      {{"Input", false}, {"Side", false}, {"Path", false}, {"Bytes", true}, {"SHA-256", false}});
  for (const NamedSide& side : sides) {
    if (!side.side->run) continue;
    for (const store::InputRecord& input : side.side->run->inputs)
      table.row({shown(input.kind, 60), side_mark(side.letter), code(input.path),
                 count(input.bytes), code(input.sha256)});
  }
  return table.empty() ? std::string() : folded("Inputs", table.html());
}

std::string or_absent(const std::string& text) {
  return text.empty() ? element("span", "absent", "not recorded") : code(text);
}

std::string records_table(std::span<const NamedSide> sides) {
  Table table(with_sides("Record", sides));
  const auto row = [&](const char* name, const auto& value) {
    std::vector<std::string> cells = {name};
    for (const NamedSide& side : sides) cells.push_back(or_absent(value(*side.side)));
    table.row(cells);
  };
  const auto of_run = [](std::string store::RecordedRun::*field) {
    return [field](const Side& side) { return side.run ? (*side.run).*field : std::string(); };
  };
  const auto of_evaluation = [](std::string EvaluationData::*field) {
    return [field](const Side& side) {
      return side.evaluation ? (*side.evaluation).*field : std::string();
    };
  };
  row("Database", [](const Side& side) { return side.database; });
  row("Run", of_run(&store::RecordedRun::run_id));
  row("Name", of_run(&store::RecordedRun::name));
  row("Created", of_run(&store::RecordedRun::created_utc));
  row("Status", of_run(&store::RecordedRun::status));
  row("Experiment digest", of_run(&store::RecordedRun::experiment_digest));
  row("Evaluation", of_evaluation(&EvaluationData::evaluation_id));
  row("Evaluated", of_evaluation(&EvaluationData::created_utc));
  row("Checkpoint", of_evaluation(&EvaluationData::checkpoint));
  row("Weights digest", of_evaluation(&EvaluationData::weights_digest));
  row("Tokenizer digest", of_evaluation(&EvaluationData::tokenizer_digest));
  return table.html();
}

}  // namespace

std::string provenance_section(std::span<const NamedSide> sides) {
  return section(
      "provenance", "Provenance",
      records_table(sides) + facts_table(sides) + attempts_table(sides) + inputs_table(sides));
}

std::string command_section(const std::string& command, const std::string& version,
                            std::span<const NamedSide> sides) {
  std::string html = command.empty() ? note("The command was not recorded.")
                                     : element("pre", "", shown(command, 4000)) + "\n";
  Table table({{"Database", false}, {"Side", false}, {"SHA-256", false}});
  for (const NamedSide& side : sides)
    table.row(
        {code(side.side->database), side_mark(side.letter), or_absent(side.side->database_sha256)});
  html += table.html() +
          note("Made by olmo-harness " + shown(version, 120) +
               ". The same databases, version and task data give this page byte for byte.");
  return section("command", "Make this page again", html);
}

}  // namespace olmo::report::page
