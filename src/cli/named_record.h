// Which run or evaluation of a database a command takes. A database that is named alone stands for
// its latest one, and where it holds several that is said.
#pragma once

#include <cstddef>
#include <string>

#include "store/runs/run_db.h"

namespace olmo::cli {

/// The id of the run that `name` stands for. Throws as RunDb::find_run.
std::string find_named_run(const store::RunDb& db, const store::RunName& name);

/// Says on stderr that `id` is the latest of `count` runs or evaluations (`what`), unless the
/// command line named it or there is no other. `list`: the command that shows all.
void note_latest(const store::RunName& name, const std::string& id, const char* what,
                 std::size_t count, const char* list);

}  // namespace olmo::cli
