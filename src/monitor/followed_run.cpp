#include "monitor/followed_run.h"

#include "core/error.h"

namespace olmo::monitor {

FollowedRun::FollowedRun(std::string name)
    : name_(std::move(name)), where_(store::parse_run_name(name_)) {}

void FollowedRun::open_if_new() {
  // A run folder that was not there when its name was parsed may be there now.
  if (!records_) where_ = store::parse_run_name(name_);
  const auto now = store::state_of(where_.database).file;
  if (records_ && now.device == file_.device && now.inode == file_.inode) return;
  records_.reset();
  records_ = std::make_unique<store::RecordDatabase>(where_.database, store::OpenMode::kReadOnly);
  file_ = now;
}

void FollowedRun::look(std::size_t rows) {
  try {
    open_if_new();
    // Once a run was found it is the one to follow, though a later one may begin in the same file.
    // Where another file has taken the place, such as that of a training begun anew, the run in it.
    std::string wanted = run_id_.empty() ? where_.run : run_id_;
    auto ids = store::ids_from(*records_, "run", wanted);
    if (ids.empty() && !run_id_.empty()) {
      wanted = where_.run;
      ids = store::ids_from(*records_, "run", wanted);
    }
    const std::string id = store::one_id_of(*records_, "run", wanted, ids);
    auto view = read_run_view(*records_, id);
    if (id != run_id_) curves_ = RunCurves();
    curves_.follow(*records_, view.line, rows);
    run_id_ = id;
    view_ = std::move(view);
    problem_.clear();
  } catch (const Error& error) {
    records_.reset();  // what is wrong with it may pass: it is opened again
    problem_ = error.what();
    problem_kind_ = error.kind();
  }
}

bool FollowedRun::has_ended() const { return problem_.empty() && view_ && !view_->may_run(); }

}  // namespace olmo::monitor
