#include "report/record/side.h"

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "report/record/contradictions.h"
#include "report/record/missing_rows.h"
#include "store/run_files.h"
#include "store/runs/declarations.h"
#include "store/runs/retrained_steps.h"

namespace olmo::report {
namespace {

namespace fs = std::filesystem;
using store::EvaluationDb;

/// The last component that tells runs apart: `runs/a/run.db` is `a`.
std::string label_of(const std::string& text, const store::RunName& name) {
  const fs::path path = name.database;
  std::string label = path.filename() == store::kRunDatabaseName && path.has_parent_path()
                          ? fs::weakly_canonical(path).parent_path().filename().string()
                          : path.stem().string();
  if (label.empty()) label = text;
  return name.run.empty() ? label : label + ":" + name.run;
}

bool is_finished(const store::EvaluationEntry& entry) { return entry.status == "finished"; }

/// What a database without runs stands for, the oldest first: its latest finished evaluation, and
/// the others of the same weights. Where none is finished, the latest.
std::vector<store::EvaluationEntry> of_latest_model(const EvaluationDb& evaluations) {
  auto entries = evaluations.list();
  const auto latest = std::ranges::find_if(entries.rbegin(), entries.rend(), is_finished);
  if (latest == entries.rend()) return {evaluations.entry(evaluations.find(""))};
  const store::EvaluationEntry named = *latest;
  const std::string& weights = named.record.weights_digest;
  std::erase_if(entries, [&](const store::EvaluationEntry& entry) {
    const bool same = !weights.empty() && entry.record.weights_digest == weights;
    return entry.evaluation_id != named.evaluation_id && !(same && is_finished(entry));
  });
  return entries;
}

}  // namespace

SideRecords open_records(const store::RunName& name, store::OpenMode reading) {
  SideRecords opened;
  opened.db = std::make_unique<store::RunDb>(store::RunDb::open(name.database, reading));
  opened.is_named = !name.run.empty();
  opened.database().check_pages();
  EvaluationDb evaluations(opened.database());
  if (opened.db->has_run(name.run)) {
    opened.run_id = opened.db->find_run(name.run);
    for (const auto& entry : evaluations.list(opened.run_id))
      (is_finished(entry) ? opened.evaluations : opened.unfinished).push_back(entry);
  } else if (opened.is_named) {
    opened.evaluations = {evaluations.entry(evaluations.find(name.run))};
  } else {
    opened.evaluations = of_latest_model(evaluations);
  }
  return opened;
}

EvaluationData read_evaluation(const SideRecords& records, const std::string& evaluation_id) {
  return read_evaluation(records.database(), evaluation_id, *records.seals);
}

Side name_side(const std::string& text, const store::RunName& name) {
  Side side;
  side.label = label_of(text, name);
  side.database = name.database.filename().string();
  return side;
}

void hash_database(Side& side, const store::RunName& name) {
  if (fs::is_regular_file(name.database)) side.database_sha256 = sha256_file(name.database).hex();
}

std::vector<std::string> damage_of(const Side& side) {
  constexpr std::size_t kMostSentences = 20;
  std::vector<std::string> sentences;
  if (side.run) {
    sentences = contradictions_of(*side.run);
    for (const auto& finding : side.run->damage)
      if (sentences.size() < kMostSentences) sentences.push_back(finding.sentence);
  }
  if (side.evaluation)
    sentences.insert(sentences.end(), side.evaluation->damage.begin(),
                     side.evaluation->damage.end());
  return sentences;
}

void give_tokens(store::RecordedRun& run, std::int64_t tokens_per_step) {
  if (run.tokens_known || !run.steps.steps_known) return;
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    run.steps.tokens[i] = run.steps.step[i] * tokens_per_step;
  run.tokens_known = true;
}

store::RecordedRun read_whole_run(const store::RecordDatabase& records, const std::string& run_id) {
  store::RecordedRun run = store::read_run(records, run_id);
  for (auto& sentence : missing_rows(records, run))
    run.damage.push_back({.step = 0, .quantity = {}, .sentence = std::move(sentence)});
  const auto declarations = store::read_declarations(records, run_id);
  for (auto& sentence : store::altered_declarations(records, run_id, declarations))
    run.damage.push_back({.step = 0, .quantity = {}, .sentence = std::move(sentence)});
  return run;
}

void add_run(Side& side, const SideRecords& records) {
  if (records.run_id.empty()) return;
  side.run = read_whole_run(records.database(), records.run_id);
  side.run->label = side.label;
  if (const auto found = store::disagreement_of(records.database(), records.run_id))
    side.disagreement = store::sentence_of(*found);
  side.unchecked = unchecked_of(*side.run);
}

}  // namespace olmo::report
