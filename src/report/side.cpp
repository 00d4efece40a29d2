#include "report/side.h"

#include "core/error.h"
#include "core/hash.h"

namespace olmo::report {
namespace {

namespace fs = std::filesystem;
using store::EvaluationDb;

bool has_run(const store::RecordDatabase& records, const std::string& prefix) {
  bool found = false;
  records.query("SELECT 1 FROM runs WHERE substr(run_id, 1, ?) = ? LIMIT 1",
                {static_cast<std::int64_t>(prefix.size()), prefix},
                [&](const auto&, const auto&) { found = true; });
  return found;
}

/// The last component that tells runs apart: `runs/a/run.db` is `a`.
std::string label_of(const std::string& text, const store::RunName& name) {
  const fs::path path = name.database;
  std::string label = path.filename() == "run.db" && path.has_parent_path()
                          ? fs::weakly_canonical(path).parent_path().filename().string()
                          : path.stem().string();
  if (label.empty()) label = text;
  return name.run.empty() ? label : label + ":" + name.run;
}

}  // namespace

SideRecords open_records(const store::RunName& name) {
  SideRecords opened;
  opened.db =
      std::make_unique<store::RunDb>(store::RunDb::open(name.database, store::OpenMode::kReadOnly));
  opened.database().connection().check_pages();
  EvaluationDb evaluations(opened.database());
  if (has_run(opened.database(), name.run)) {
    opened.run_id = opened.db->find_run(name.run);
    for (const auto& entry : evaluations.list(opened.run_id))
      if (entry.status == "finished") opened.evaluations.push_back(entry);
  } else {
    opened.evaluations.push_back(evaluations.entry(evaluations.find(name.run)));
  }
  return opened;
}

Side name_side(const std::string& text, const store::RunName& name) {
  Side side;
  side.label = label_of(text, name);
  side.database = name.database.filename().string();
  if (fs::is_regular_file(name.database)) side.database_sha256 = sha256_file(name.database).hex();
  return side;
}

void add_run(Side& side, const SideRecords& records) {
  if (records.run_id.empty()) return;
  side.run = read_run(records.database(), records.run_id);
  side.run->label = side.label;
}

}  // namespace olmo::report
