// `olmo-harness runs diff`: in what two recorded runs differ, as a list. What that means for their
// results is for `report parity` to say.
#include <array>
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_path.h"
#include "cli/interface/help.h"
#include "cli/screen/table.h"
#include "config/key_table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "monitor/run_view.h"
#include "report/comparability/comparability.h"
#include "report/gate.h"
#include "report/record/side.h"
#include "report/training/identity.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct RunsDiffArguments {
  std::string a, b;
  bool json = false;
};

/// What a difference is of, in the order in which a reader asks for it.
enum class Part { kDeciding, kInputs, kOtherKeys, kRanks, kPolicy, kBuild, kEnvironment };

struct PartWords {
  Part part;
  const char* key;  ///< in the JSON object
  const char* title;
};

constexpr PartWords kParts[] = {
    {Part::kDeciding, "config", "Config: keys that decide what is computed"},
    {Part::kInputs, "inputs", "Inputs and start"},
    {Part::kOtherKeys, "config_other", "Config: paths, limits and records, which change no bit"},
    {Part::kRanks, "ranks", "Ranks"},
    {Part::kPolicy, "policy", "Policy of the last start"},
    {Part::kBuild, "build", "Build of the last start"},
    {Part::kEnvironment, "environment", "Machine of the last start"},
};

Part part_of(const std::string& what) {
  if (what == "ranks") return Part::kRanks;
  if (what.starts_with("policy")) return Part::kPolicy;
  if (what.starts_with("build")) return Part::kBuild;
  if (what.starts_with("environment")) return Part::kEnvironment;
  for (const char* input : {"tokenizer", "token files", "order of the token files", "label masks",
                            "tokens of a step", "data order", "initial weights"})
    if (what == input) return Part::kInputs;
  using config::Effect;
  const Effect effect = config::rule_of(what).effect;
  const bool decides =
      effect == Effect::kIdentity || effect == Effect::kPrecision || effect == Effect::kRefused;
  return decides ? Part::kDeciding : Part::kOtherKeys;
}

/// How far the logged values agree where a side is a log, without hashes.
struct LoggedValues {
  std::int64_t common_steps = 0;
  std::int64_t equal_steps = 0;  ///< before the first that differs
  std::optional<std::int64_t> first_different;
  std::string first_field;
};

struct Compared {
  report::Side a, b;
  std::string state_a, state_b;  ///< the status, or what can be seen of it
  report::Gate gate;
  report::Identity identity;
  LoggedValues logged;  ///< where the identity is not known

  [[nodiscard]] bool equal() const {
    const bool same = identity.known ? identity.same_training() : !logged.first_different;
    const auto common =
        static_cast<std::size_t>(identity.known ? identity.common_steps : logged.common_steps);
    return gate.mismatches.empty() && same && common == a.run->steps.size() &&
           common == b.run->steps.size();
  }
};

LoggedValues compare_logged(const store::StepColumns& a, const store::StepColumns& b) {
  using Columns = store::StepColumns;
  constexpr std::array<std::pair<const char*, std::vector<double> Columns::*>, 3> kFields = {
      {{"ce_loss", &Columns::loss}, {"grad_norm", &Columns::grad_norm}, {"lr", &Columns::lr}}};
  // What a log does not have is no difference. Every step has a loss, be it none that is finite.
  const auto differ = [](double x, double y, bool loss) {
    if (std::isnan(x) || std::isnan(y)) return loss && std::isnan(x) != std::isnan(y);
    return x != y;
  };
  LoggedValues found;
  for (const auto& [i, j] : report::common_steps(a, b)) {
    ++found.common_steps;
    if (found.first_different) continue;
    for (const auto& [name, column] : kFields) {
      const bool loss = column == &Columns::loss;
      if (found.first_different || !differ((a.*column)[i], (b.*column)[j], loss)) continue;
      found.first_different = a.step[i];
      found.first_field = name;
    }
    if (!found.first_different) ++found.equal_steps;
  }
  return found;
}

/// Reads the run into `side`; what is wrong with its record is told, as a list of differences says
/// little about a record that was altered.
report::SideRecords read_side(const std::string& text, report::Side& side) {
  const auto name = store::parse_run_name(text);
  auto records = report::open_records(name);
  side = report::name_side(text, name);
  report::add_run(side, records);
  if (!side.run) throw Error(ErrorKind::kUsage, text + ": is an evaluation, and no run");
  for (const auto& sentence : report::damage_of(side)) log_warning(side.label + ": " + sentence);
  if (!side.disagreement.empty()) log_warning(side.label + " " + side.disagreement);
  if (!side.unchecked.empty()) log_warning(side.label + ": the record " + side.unchecked);
  return records;
}

/// A record that was not ended may be that of a killed training.
std::string state_of(const report::Side& side, const report::SideRecords& records) {
  return monitor::judge(records.database(), records.run_id, side.run->status, false).state;
}

Compared compare(const RunsDiffArguments& options) {
  Compared found;
  const auto records_a = read_side(options.a, found.a);
  const auto records_b = read_side(options.b, found.b);
  found.state_a = state_of(found.a, records_a);
  found.state_b = state_of(found.b, records_b);
  // Of independent trainings nothing is taken for granted: a start that differs is listed, too.
  found.gate = report::compare_settings(found.a, found.b, report::Kind::kOutcome);
  found.identity =
      report::find_identity(*found.a.run, *found.b.run, {records_a.database(), records_a.run_id},
                            {records_b.database(), records_b.run_id});
  if (const auto sentence = report::contradiction_of(found.identity); !sentence.empty())
    log_warning("the records contradict each other: " + sentence);
  if (!found.identity.known) found.logged = compare_logged(found.a.run->steps, found.b.run->steps);
  return found;
}

std::string steps_of(const store::RecordedRun& run) {
  if (run.steps.size() == 0) return "none";
  return std::to_string(run.steps.step.front()) + " to " + std::to_string(run.steps.step.back());
}

/// The same of logs.
std::string agreement_of(const LoggedValues& logged) {
  const std::string text = "A side has no hash chain: of bits the records do not tell. ";
  if (logged.common_steps == 0) return text + "They have no step in common.";
  const std::string common = counted(logged.common_steps, "common step");
  if (!logged.first_different)
    return text + "The loss, gradient norm and learning rate that both log are equal at all " +
           common + ".";
  return text + "The values that both log part at step " + std::to_string(*logged.first_different) +
         ", in " + logged.first_field + ": of " + common + " the first " +
         std::to_string(logged.equal_steps) + " are equal.";
}

/// The limits of gradients that differ, which steps record beside what they computed.
std::string limits_that_differ(const report::Gate& gate) {
  std::vector<std::string> found;
  for (const auto& mismatch : gate.mismatches)
    if (mismatch.what.starts_with("max_grad_norm") ||
        mismatch.what.starts_with("scheduler.grad_clip"))
      found.push_back(mismatch.what + " (" + mismatch.a + " and " + mismatch.b + ")");
  return joined(found);
}

/// One sentence: how far the records agree.
std::string agreement_of(const report::Identity& identity, const report::Gate& gate) {
  if (identity.common_steps == 0) return "The records have no step in common.";
  const std::string common = counted(identity.common_steps, "common step");
  if (const auto limits = limits_that_differ(gate); identity.same_training() && !limits.empty())
    return "All bits that the " + common + " computed are equal, though " + limits +
           " differs: it changed none of them.";
  if (identity.same_training()) return "All bits of the " + common + " are equal.";
  if (const auto& parted = identity.parted_state; parted && identity.first_different == 0)
    return "The " + common + " have equal bits, and " + counted(parted->different, "tensor") +
           " of the state after step " + std::to_string(parted->step) +
           " differ, the first being " + parted->names.front() + ".";
  if (identity.first_different == 0)
    return "The " + common + " have equal bits" +
           (identity.same_format
                ? ", and in step " + std::to_string(*identity.operation->traced) +
                      " the output of " + identity.operation->operation + " differs."
                : " as far as losses tell: their chains have two formats.");
  return "The records part at step " + std::to_string(identity.first_different) + ", in " +
         identity.first_field + ": of " + common + " the first " +
         std::to_string(identity.equal_steps) + " have equal bits.";
}

/// As this program was started, so that a shell finds it.
std::string parity_command(const RunsDiffArguments& options) {
  const auto words = command_words();
  return shell_line(std::array<std::string, 5>{words.empty() ? "olmo-harness" : words.front(),
                                               "report", "parity", options.a, options.b});
}

OrderedJson run_json(const report::Side& side, const std::string& state) {
  return {{"run_id", side.run->run_id}, {"name", side.run->name},
          {"status", side.run->status}, {"state", state},
          {"database", side.database},  {"steps", side.run->steps.size()}};
}

void print_json(const Compared& found, const RunsDiffArguments& options) {
  OrderedJson json = {{"equal", found.equal()},
                      {"a", run_json(found.a, found.state_a)},
                      {"b", run_json(found.b, found.state_b)}};
  OrderedJson differences = OrderedJson::object();
  for (const auto& words : kParts) differences[words.key] = OrderedJson::array();
  for (const auto& mismatch : found.gate.mismatches)
    for (const auto& words : kParts)
      if (words.part == part_of(mismatch.what))
        differences[words.key].push_back({{"what", mismatch.what},
                                          {"a", mismatch.a},
                                          {"b", mismatch.b},
                                          {"reason", mismatch.reason}});
  json["differences"] = differences;
  json["equal_parts"] = found.gate.equal;
  OrderedJson unknown = OrderedJson::array();
  for (const auto& fact : found.gate.unknown)
    unknown.push_back({{"what", fact.key}, {"a", fact.a}, {"b", fact.b}});
  json["unknown"] = unknown;
  const auto& identity = found.identity;
  json["records"] = {{"known", identity.known},
                     {"common_steps", identity.common_steps},
                     {"equal_steps", identity.equal_steps},
                     {"first_different", nullptr},
                     {"first_field", nullptr}};
  if (identity.first_different > 0) {
    json["records"]["first_different"] = identity.first_different;
    json["records"]["first_field"] = identity.first_field;
  }
  if (!identity.known) {
    json["records"]["common_steps"] = found.logged.common_steps;
    json["records"]["equal_steps"] = found.logged.equal_steps;
    json["records"]["first_different"] = or_null(found.logged.first_different);
    if (found.logged.first_different) json["records"]["first_field"] = found.logged.first_field;
  }
  json["verdict"] = parity_command(options);
  std::cout << json_text(json, 2) << "\n";
}

void print_text(const Compared& found, const RunsDiffArguments& options) {
  const auto& a = *found.a.run;
  const auto& b = *found.b.run;
  TextTable runs({"", "run", "name", "status", "steps"});
  runs.add({"A", a.run_id, text_of(a.name), found.state_a, steps_of(a)});
  runs.add({"B", b.run_id, text_of(b.name), found.state_b, steps_of(b)});
  runs.print(std::cout);
  for (const auto& words : kParts) {
    TextTable table({"what", "A", "B"});
    bool any = false;
    for (const auto& mismatch : found.gate.mismatches) {
      if (part_of(mismatch.what) != words.part) continue;
      const bool untold = mismatch.a.empty() && mismatch.b.empty();
      table.add(
          {text_of(mismatch.what), untold ? "differs" : text_of(mismatch.a), text_of(mismatch.b)});
      any = true;
    }
    if (!any) continue;
    std::cout << "\n" << words.title << "\n";
    table.print(std::cout, 2);
  }
  std::cout << "\n";
  if (!found.gate.equal.empty()) std::cout << fitted("Equal: " + joined(found.gate.equal) + ".");
  std::vector<std::string> unknown;
  for (const auto& fact : found.gate.unknown) unknown.push_back(fact.key);
  if (!unknown.empty()) std::cout << fitted("Not told by both: " + joined(unknown) + ".");
  std::cout << fitted(found.identity.known ? agreement_of(found.identity, found.gate)
                                           : agreement_of(found.logged))
            << "This is a list and no verdict: " << parity_command(options) << "\n";
}

int diff(const RunsDiffArguments& options) {
  const Compared found = compare(options);
  if (options.json) {
    print_json(found, options);
  } else {
    print_text(found, options);
  }
  return found.equal() ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace

void add_runs_diff(const Command& runs) {
  const Command comparing =
      runs.add("diff", "List in what two runs differ: config, inputs, machine, first step");
  auto& options = comparing.options<RunsDiffArguments>();
  comparing.run(options.a, "RUN_A", kRunForms).required();
  comparing.run(options.b, "RUN_B", "The other one").required();
  comparing.json(options.json);
  comparing.footer(
      "Exit code 0: nothing differs, 5: something does. It is a list and no verdict; `report "
      "parity` gives one.\n"
      "Example: olmo-harness runs diff runs/a runs/b");
  comparing.action([&options] { return diff(options); });
}

}  // namespace olmo::cli
