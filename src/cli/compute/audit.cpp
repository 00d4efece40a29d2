// What `olmo-harness audit` does.
#include "audit/audit.h"

#include <iostream>
#include <random>

#include <nlohmann/json.hpp>

#include "cli/compute/audit_output.h"
#include "cli/compute/compute.h"
#include "cli/named_record.h"
#include "core/compute/libtorch.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/hash.h"
#include "core/process/activity.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "report/record/contradictions.h"
#include "report/record/missing_rows.h"
#include "store/evaluations/evaluation_db.h"
#include "store/evaluations/evaluation_seal.h"
#include "store/runs/audit_records.h"
#include "store/runs/op_traces.h"
#include "store/runs/policy_json.h"
#include "store/runs/provenance.h"
#include "store/runs/retrained_steps.h"
#include "train/recorded_places.h"

namespace olmo::cli::compute {
namespace {

namespace fs = std::filesystem;

audit::Stretch parse_stretch(const std::string& text) {
  const auto number = [&](const std::string& digits) -> std::int64_t {
    if (digits.empty() || digits.size() > 15 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      throw Error(ErrorKind::kUsage, "audit: --steps must be A..B or one step, got '" + text + "'");
    return std::stoll(digits);
  };
  const auto dots = text.find("..");
  if (dots == std::string::npos) return {number(text), number(text)};
  const audit::Stretch stretch{number(text.substr(0, dots)), number(text.substr(dots + 2))};
  if (stretch.first > stretch.last) {
    throw Error(ErrorKind::kUsage,
                "audit: --steps " + text + " ends before it begins: the first step comes first");
  }
  return stretch;
}

/// Throws Error(kDamaged) unless the recorded config is the one that the run was begun with, and
/// Error(kUsage) where that cannot be read here.
void require_sound_config(const audit::AuditedRun& recorded, const std::string& run) {
  const auto fits = config::has_digest(recorded.config, recorded.experiment_digest);
  // What enters the digest was another choice then: the recorded one stands as it is.
  if (fits && (*fits || recorded.chain_format != kChainFormat)) return;
  if (!fits && recorded_json(recorded.config).is_object())
    throw Error(ErrorKind::kUsage, run + ": the record " + report::unchecked_of(recorded));
  throw Error(ErrorKind::kDamaged, run + ": " + report::kAlteredConfig);
}

/// Throws Error(kDamaged) if a column of the record is not what its config says.
void require_sound_columns(const audit::AuditedRun& recorded, const std::string& run) {
  const auto contradictions = report::contradictions_of(recorded);
  if (!contradictions.empty())
    throw Error(ErrorKind::kDamaged, run + ": " + contradictions.front());
}

/// Throws Error(kDamaged) if an evaluation of the run was altered after it had ended.
void require_sound_evaluations(store::RunDb& db, const std::string& run_id) {
  for (const auto& entry : store::EvaluationDb(db.records()).list(run_id)) {
    const auto seals = store::check_seals(db.records(), entry.evaluation_id);
    if (seals.altered.empty()) continue;
    throw Error(ErrorKind::kDamaged, db.path().string() + ": evaluation " + entry.evaluation_id +
                                         ": " + seals.altered.front());
  }
}

/// The run's config with the paths of this machine.
config::TrainConfig config_here(const audit::AuditedRun& recorded, const AuditOptions& arguments) {
  require_sound_config(recorded, arguments.run);
  require_sound_columns(recorded, arguments.run);
  auto loaded = config::parse_config(recorded.config, arguments.run + ".json", arguments.overrides);
  config::require_no_blockers(loaded);
  config::TrainConfig& config = loaded.config;
  const auto as_recorded = config::parse_config(recorded.config, arguments.run + ".json");
  if (config::experiment_digest(config) != config::experiment_digest(as_recorded.config)) {
    throw Error(ErrorKind::kUsage, arguments.run + ": the config with " +
                                       arguments.overrides.front() +
                                       " is another experiment; an audit may set paths only");
  }
  if (arguments.data.empty()) {
    train::use_recorded_places(config.data, recorded.inputs);
  } else {
    for (std::string* path : config.data.named_files())
      *path = (fs::path(arguments.data) / fs::path(*path).filename()).string();
  }
  return std::move(config);
}

std::vector<audit::Stretch> stretches_of(const audit::AuditedRun& recorded,
                                         const AuditOptions& arguments) {
  if (arguments.sample > 0) {
    const auto seed = arguments.seed.value_or(std::random_device{}());
    log_line("sample: " + counted(arguments.length, "step") + " in a row, at " +
             counted(arguments.sample, "place") + " (--seed " + std::to_string(seed) + ")");
    return audit::sample_stretches(recorded, arguments.sample, arguments.length, seed);
  }
  const audit::Stretch stretch = arguments.steps.empty()
                                     ? audit::Stretch{recorded.first_step(), recorded.last_step()}
                                     : parse_stretch(arguments.steps);
  audit::require_recorded(recorded, stretch);
  return {stretch};
}

/// One row of `audits` for each stretch, and the traces that were made.
void write_record(store::RunDb& db, const std::string& run_id, const AuditOptions& arguments,
                  const Policy& policy, const audit::AuditResult& result) {
  for (const auto& stretch : result.stretches) {
    store::AuditRecord row{.created_utc = {},
                           .command_line = arguments.command_line,
                           .policy = json_text(store::policy_json(policy)),
                           .build = json_text(store::build_json()),
                           .environment = json_text(store::environment_json()),
                           .started_from = stretch.started_from,
                           .first_step = stretch.stretch.first,
                           .last_step = stretch.stretch.last,
                           .verdict = to_string(stretch.verdict),
                           .difference_step = {},
                           .difference = {},
                           .operation = stretch.operation,
                           .ce_loss_distance = stretch.distances.ce_loss,
                           .grad_norm_distance = stretch.distances.grad_norm};
    if (!stretch.findings.empty()) {
      row.difference_step = stretch.findings.front().step;
      row.difference = stretch.findings.front().quantity;
    }
    const auto number = store::record_audit(db.records(), run_id, row);
    for (const auto& trace : stretch.traces) {
      store::record_trace(db.records(), run_id, {.attempt = 0, .audit = number}, trace.step,
                          trace.digests);
    }
  }
  db.flush();
}

int run_audit(const AuditOptions& arguments) {
  if (!arguments.steps.empty()) parse_stretch(arguments.steps);  // before anything is opened
  const auto name = store::parse_run_name(arguments.run);
  auto db = store::RunDb::open(
      name.database, arguments.record ? store::OpenMode::kReadWrite : store::OpenMode::kReadOnly);
  const std::string run_id = find_named_run(db, name);
  const audit::AuditedRun recorded = during("reading the record of " + arguments.run, [&] {
    return audit::read_audited_run(db.records(), run_id);
  });
  const config::TrainConfig config = config_here(recorded, arguments);
  during("checking the record's seals", [&] { require_sound_evaluations(db, run_id); });
  const PolicyOptions& here = arguments.policy;
  Policy policy =
      resolve_policy(recorded.fast ? "fast" : "portable", here.isa, here.threads, here.device);
  policy.mixed_precision = config.mixed_precision();
  apply_policy(policy);
  audit::AuditOptions options{
      .database = fs::absolute(name.database),
      .checkpoints = arguments.checkpoints.empty() ? std::nullopt
                                                   : std::optional(fs::path(arguments.checkpoints)),
      .stretches = stretches_of(recorded, arguments),
      // One that was altered is told as such, and says nothing of the operations.
      .recorded_trace =
          [&, altered = store::altered_traces(db.records(), run_id)](std::int64_t step) {
            return altered.contains(step) ? std::vector<OpDigest>{}
                                          : store::read_trace(db.records(), run_id, step);
          },
      .trace = arguments.trace};
  if (!arguments.json) std::cout << audit_header(recorded, policy) << std::flush;
  audit::AuditResult result =
      audit::audit(recorded, config, policy, options, [&](const audit::StretchResult& stretch) {
        if (!arguments.json) std::cout << to_text(stretch) << std::flush;
      });
  for (auto& sentence : report::missing_rows(db.records(), recorded))
    result.broken_proofs.push_back({.step = 0, .quantity = {}, .sentence = std::move(sentence)});
  if (const auto found = store::disagreement_of(db.records(), run_id))
    result.disagreement = store::sentence_of(*found);
  if (arguments.record) write_record(db, run_id, arguments, policy, result);
  if (arguments.json) {
    std::cout << json_text(to_json(result, recorded, policy), 2) << "\n";
  } else {
    std::cout << audit_footer(result, recorded) << std::flush;
    if (!arguments.record)
      log_line("--record writes the result into the run's database, where reports find it");
  }
  return result.verdict() == audit::AuditVerdict::kDifferent
             ? static_cast<int>(ErrorKind::kCheckFailed)
             : 0;
}

/// A run opened for its traces.
struct Traces {
  explicit Traces(const std::string& text)
      : name(store::parse_run_name(text)),
        db(store::RunDb::open(name.database, store::OpenMode::kReadOnly)),
        run_id(find_named_run(db, name)) {}

  [[nodiscard]] std::vector<OpDigest> of(std::int64_t step) const {
    return store::read_trace(db.records(), run_id, step);
  }

  store::RunName name;
  store::RunDb db;
  std::string run_id;
};

int compare_traces(const AuditOptions& arguments) {
  const Traces a(arguments.run), b(arguments.against);
  TraceComparison comparison;
  const auto steps_b = store::traced_steps(b.db.records(), b.run_id);
  for (const auto step : store::traced_steps(a.db.records(), a.run_id)) {
    if (!std::binary_search(steps_b.begin(), steps_b.end(), step)) continue;
    const auto trace_a = a.of(step), trace_b = b.of(step);
    if (format_of(trace_a) != format_of(trace_b)) continue;
    comparison.steps.push_back(step);
    comparison.difference = first_difference(trace_a, trace_b);
    if (comparison.difference) break;
  }
  if (comparison.steps.empty()) {
    throw Error(ErrorKind::kUsage, "audit --against: no step is traced in both " + arguments.run +
                                       " and " + arguments.against +
                                       ", with hashes of one format; `audit RUN --steps N --trace "
                                       "--record` traces one on each machine");
  }
  std::cout << (arguments.json ? json_text(to_json(comparison), 2) + "\n" : to_text(comparison));
  return comparison.difference ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
}

}  // namespace

int audit(const AuditOptions& options) {
  return options.against.empty() ? run_audit(options) : compare_traces(options);
}

}  // namespace olmo::cli::compute
