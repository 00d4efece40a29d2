// `olmo-harness runs list`: the runs of databases, and of all databases below a folder.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_databases.h"
#include "cli/interface/usage.h"
#include "cli/run_row.h"
#include "cli/screen/table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "monitor/run_view.h"
#include "store/evaluations/evaluation_db.h"
#include "store/runs/run_facts.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
using store::RunOverview;

struct RunsListArguments {
  std::vector<std::string> places;
  std::vector<std::string> filters;
  std::string sort;
  bool reverse = false;
  bool json = false;
};

struct ListedRun {
  fs::path database;
  RunOverview run;
  std::string name;   ///< by which other commands find it
  std::string state;  ///< its status; where that is "running", what can be seen of it
  report::RecordCheck record = {};
};

/// A condition that a run must meet.
struct Filter {
  std::string key;
  std::string value;

  [[nodiscard]] bool takes(const ListedRun& listed) const {
    const auto& [database, run, name, state, record] = listed;
    if (key == "status") return value == "running" ? state.starts_with(value) : state == value;
    if (key == "tag") return std::ranges::find(run.tags, value) != run.tags.end();
    return run.name.find(value) != std::string::npos;
  }
};

Filter parse_filter(const std::string& text) {
  const auto at = text.find_first_of("=~");
  const std::string key = text.substr(0, at);
  const bool known = (at != std::string::npos) && at + 1 < text.size() &&
                     (text[at] == '~' ? key == "name" : key == "status" || key == "tag");
  if (!known)
    throw Error(
        ErrorKind::kUsage,
        "runs list: --filter must be status=STATUS, tag=TAG or name~PART, got '" + text + "'");
  Filter filter{.key = key, .value = text.substr(at + 1)};
  const std::vector<std::string> statuses = {"running", "not running", "finished",
                                             "stopped", "diverged",    "failed"};
  if (key == "status" && std::ranges::find(statuses, filter.value) == statuses.end())
    throw Error(ErrorKind::kUsage, "runs list: --filter status: there is no '" + filter.value +
                                       "', a run is " + listed(statuses));
  return filter;
}

/// A number by which runs are sorted; nothing: not known, which comes last.
using SortNumber = std::optional<double> (*)(const RunOverview&);

template <class T>
std::optional<double> number(const std::optional<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

struct SortKey {
  const char* name;
  std::string (*text)(const RunOverview&);  ///< null: sorted by the number
  SortNumber number;
};

constexpr SortKey kSortKeys[] = {
    {"created", [](const RunOverview& run) { return run.created_utc; }, nullptr},
    {"name", [](const RunOverview& run) { return run.name; }, nullptr},
    {"status", [](const RunOverview& run) { return run.status; }, nullptr},
    {"step", nullptr, [](const RunOverview& run) { return number(run.step); }},
    {"tokens", nullptr, [](const RunOverview& run) { return number(run.tokens); }},
    {"ce_loss", nullptr, [](const RunOverview& run) { return number(run.ce_loss); }},
    {"tokens_per_second", nullptr,
     [](const RunOverview& run) { return number(run.tokens_per_second); }},
};

std::vector<std::string> sort_keys() {
  std::vector<std::string> names;
  for (const auto& key : kSortKeys) names.emplace_back(key.name);
  return names;
}

void sort_runs(std::vector<ListedRun>& runs, const std::string& by, bool reverse) {
  const auto* key = std::ranges::find_if(kSortKeys, [&](const auto& k) { return by == k.name; });
  if (key == std::end(kSortKeys)) {
    if (reverse) std::ranges::reverse(runs);
    return;
  }
  std::ranges::stable_sort(runs, [&](const ListedRun& left, const ListedRun& right) {
    const auto& [a, b] = reverse ? std::tie(right.run, left.run) : std::tie(left.run, right.run);
    if (key->text) return key->text(a) < key->text(b);
    const auto x = key->number(a), y = key->number(b);
    if (!x || !y) return key->number(left.run).has_value() && !key->number(right.run).has_value();
    return *x < *y;
  });
}

class Listing {
 public:
  explicit Listing(const RunsListArguments& options)
      : options_(options), databases_("runs list", options.places) {
    for (const auto& text : options.filters) filters_.push_back(parse_filter(text));
    databases_.read([&](store::RecordDatabase& records) { read(records); });
    sort_runs(runs_, options.sort, options.reverse);
  }

  /// Returns the exit code.
  int print() const {
    if (options_.json) {
      print_json();
    } else {
      if (!runs_.empty()) print_table();
      std::cout.flush();  // a person reads the warnings below the table
      for (const auto& failure : databases_.failures()) log_warning(failure.what());
      explain();
      if (runs_.empty() && databases_.failures().empty())
        log_line("no " + std::string(filters_.empty() ? "runs" : "such runs") + " in " +
                 joined(options_.places) + (filters_.empty() ? evaluations_there() : ""));
    }
    return databases_.exit_code();
  }

 private:
  [[nodiscard]] std::string evaluations_there() const {
    if (evaluations_ == 0) return {};
    return ", but " + counted(evaluations_, "evaluation") + "; `olmo-harness eval list` lists " +
           (evaluations_ == 1 ? "it" : "them");
  }

  /// Within a second for all runs together: the first ones of a long list.
  void check(const store::RecordDatabase& records, ListedRun& listed) {
    const auto most = std::min(report::kFewSteps, steps_left_);
    listed.record = report::check_short_record(records, listed.run.run_id, most);
    const auto steps = listed.run.step.value_or(0);
    if (steps <= most) steps_left_ -= steps;
  }

  void read(store::RecordDatabase& records) {
    auto overviews = store::read_overviews(records);
    if (overviews.empty()) evaluations_ += store::EvaluationDb(records).count_without_run();
    for (auto& run : overviews) {
      std::string name = overviews.size() == 1 ? name_of_database(records.path())
                                               : name_of_record(records.path(), run.run_id);
      std::string state = monitor::judge(records, run.run_id, run.status, false).state;
      ListedRun listed{.database = records.path(),
                       .run = std::move(run),
                       .name = std::move(name),
                       .state = std::move(state)};
      if (std::ranges::none_of(filters_, [&](const Filter& f) { return !f.takes(listed); })) {
        check(records, listed);
        runs_.push_back(std::move(listed));
      }
    }
  }

  void print_json() const {
    OrderedJson runs = OrderedJson::array();
    for (const auto& listed : runs_) {
      auto row = overview_json(listed.run);
      row["database"] = listed.database.string();
      row["evaluations"] = listed.run.evaluations;
      row["run"] = listed.name;
      row["state"] = listed.state;
      row["record"] = to_string(listed.record.state);
      row["record_reason"] = reason_json(listed.record);
      runs.push_back(std::move(row));
    }
    OrderedJson unreadable = OrderedJson::array();
    for (const auto& failure : databases_.failures()) unreadable.push_back(failure.what());
    std::cout << json_text(OrderedJson{{"runs", runs}, {"unreadable", unreadable}}, 2) << "\n";
  }

  /// After a word where the figures of the row are not to be believed as they stand: a narrow
  /// terminal cuts the end.
  static std::string state_of(const ListedRun& listed) {
    const bool sound = listed.record.state == report::RecordCheck::State::kSound;
    return (sound ? "" : to_string(listed.record.state) + std::string(", ")) + listed.state;
  }

  /// What these words mean.
  void explain() const {
    const auto of = [&](report::RecordCheck::State state) {
      return std::ranges::count(runs_, state,
                                [](const ListedRun& listed) { return listed.record.state; });
    };
    const auto records = [](std::int64_t n) {
      return counted(n, "record") + (n == 1 ? " is " : " are ");
    };
    if (const auto n = of(report::RecordCheck::State::kDamaged); n > 0)
      log_warning(records(n) +
                  "damaged: no figure of such a run is to be believed; `olmo-harness report run` "
                  "tells what is wrong");
    if (const auto n = of(report::RecordCheck::State::kUnchecked); n > 0)
      log_line(records(n) +
               "unchecked, for its length or its config: `olmo-harness runs show` checks it, or "
               "tells why not");
  }

  void print_table() const {
    TextTable table(
        {"run", "name", "status", "step", "of", "tokens", "ce_loss", "tokens/s", "evals", "tags"});
    for (const auto& listed : runs_) {
      const auto row = overview_json(listed.run);
      table.add({text_of(listed.name), text_of(row["name"]), state_of(listed), text_of(row["step"]),
                 text_of(row["max_steps"]), text_of(row["tokens"]), text_of(row["ce_loss"]),
                 text_of(row["tokens_per_second"]), std::to_string(listed.run.evaluations),
                 text_of(row["tags"])});
    }
    table.print(std::cout);
  }

  const RunsListArguments& options_;
  GivenDatabases databases_;
  std::vector<Filter> filters_;
  std::vector<ListedRun> runs_;
  std::int64_t evaluations_ = 0;       ///< of databases without runs
  std::int64_t steps_left_ = 200'000;  ///< to be checked
};

}  // namespace

void add_runs_list(const Command& runs) {
  const Command listing = runs.add("list", "List runs, one line each");
  auto& options = listing.options<RunsListArguments>();
  listing.option("PLACE", options.places, kPlacesHelp).required();
  listing.option("--sort KEY", options.sort, listed(sort_keys()) + " (default: as they are found)")
      .one_of(sort_keys());
  listing.flag("--reverse", options.reverse, "The last first");
  listing
      .option("--filter WHICH", options.filters,
              "Only runs that are so: status=running, tag=WORD, name~PART. Several: all of them")
      .one_at_a_time();
  listing.json(options.json);
  listing.footer(
      std::string(
          "A run whose record was not ended is not running where no process has its folder.\n") +
      kUnreadableHelp +
      "Example: olmo-harness runs list runs --filter status=running --sort created");
  listing.action([&options] { return Listing(options).print(); });
}

}  // namespace olmo::cli
