// One run, looked at again and again while another process may write it, move it or replace it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "monitor/run_curves.h"
#include "monitor/run_view.h"
#include "store/database/record_database.h"

namespace olmo::monitor {

/// What looking at a run found. An error of one look is a sentence; what was seen before stays.
class FollowedRun {
 public:
  /// `name`: a RUN as the command line names it (store::parse_run_name).
  explicit FollowedRun(std::string name);

  /// Looks again; reads at most `rows` rows for the curves. Never throws for what the database is.
  void look(std::size_t rows);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// As of the last look that succeeded; nothing: none has.
  [[nodiscard]] const std::optional<RunView>& view() const { return view_; }
  [[nodiscard]] const RunCurves& curves() const { return curves_; }
  /// What is to be said of its record, which a look does not check: "damaged"; empty: nothing.
  [[nodiscard]] const std::string& mark() const { return mark_; }
  void set_mark(std::string mark) { mark_ = std::move(mark); }
  /// Why the last look failed; empty: it did not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// The exit code that belongs to it.
  [[nodiscard]] ErrorKind problem_kind() const { return problem_kind_; }
  /// Whether nothing more comes by itself: its record says so, or no process has the run.
  [[nodiscard]] bool has_ended() const;

 private:
  void open_if_new();

  std::string name_;
  store::RunName where_;
  std::unique_ptr<store::RecordDatabase> records_;
  store::DatabaseState::File file_;  ///< another one may take its place
  std::string run_id_;               ///< empty: not yet known
  std::optional<RunView> view_;
  RunCurves curves_;
  std::string mark_;
  std::string problem_;
  ErrorKind problem_kind_ = ErrorKind::kUsage;
};

}  // namespace olmo::monitor
