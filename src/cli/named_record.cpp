#include "cli/named_record.h"

#include "core/process/terminal.h"
#include "store/runs/recorded_run.h"

namespace olmo::cli {

std::string find_named_run(const store::RunDb& db, const store::RunName& name) {
  std::string id = db.find_run(name.run);
  note_latest(name, id, "run", store::run_ids(db.records()).size(), "runs list");
  return id;
}

void note_latest(const store::RunName& name, const std::string& id, const char* what,
                 std::size_t count, const char* list) {
  if (!name.run.empty() || count < 2) return;
  log_line("note: " + name.database.string() + ": " + id + " is the latest of " +
           std::to_string(count) + " " + what + "s there; `olmo-harness " + list + "` shows all");
}

}  // namespace olmo::cli
