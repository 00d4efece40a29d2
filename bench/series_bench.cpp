// olmo_series_bench FOLDER [RUNS [STEPS]]
//
// What `runs watch` and `serve` read of long runs: makes FOLDER/series_bench.db with RUNS runs of
// STEPS steps (default 4 of 1,000,000; some 350 MB a run) unless it is there, and prints a Markdown
// table of milliseconds a run: medians over the runs, once with the file dropped from the system's
// cache, once from memory.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_db.h"
#include "store/runs/run_overview.h"
#include "store/runs/series.h"

namespace {

namespace fs = std::filesystem;
using namespace olmo;
using namespace olmo::store;
using Clock = std::chrono::steady_clock;

void make_run(RunDb& db, const std::string& name, std::int64_t steps) {
  db.begin_run(
      {.name = name,
       .config = "{}",
       .experiment_digest = sha256(name).hex(),
       .seed = 1,
       .n_parameters = 1'000'000'000,
       .max_steps = steps},
      {.command_line = "olmo_series_bench", .policy = "{}", .build = "{}", .environment = "{}"},
      {});
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double at = static_cast<double>(step);
    const std::string hash = sha256(name + std::to_string(step)).hex();
    StepRecord row;
    row.step = step;
    row.tokens = step * 4'194'304;
    row.lr = 4e-4 * std::min(1.0, at / 2000);
    row.ce_loss = row.ce_loss_per_label = row.loss = 2 + 9 / std::sqrt(at) + 0.02 * std::sin(at);
    row.z_loss = 1e-4;
    row.grad_norm = 0.3 + std::fabs(std::sin(at * 0.7));
    row.max_grad_norm = 1;
    row.clipping_rate = 0;
    row.param_norm = 1000 + at / 1000;
    row.seconds = 1.5 + 0.01 * std::sin(at);
    row.tokens_per_second = 4'194'304 / row.seconds;
    row.mfu = 0.4;
    row.batch_hash = row.loss_hash = row.chain_hash = hash;
    db.record_step(row);
  }
  db.end_attempt("finished");
}

void drop_from_cache(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

double milliseconds(const std::function<void()>& action) {
  const auto start = Clock::now();
  action();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Reading {
  const char* what;
  std::function<void(const RecordDatabase&, const std::string& run)> read;
};

void print_table(const fs::path& path, const std::vector<std::string>& runs) {
  const Quantities one{.columns = {"ce_loss"}};
  const Quantities six{
      .columns = {"ce_loss", "lr", "grad_norm", "tokens_per_second", "mfu", "seconds"}};
  const auto pick = [](const Quantities& what, std::size_t most) {
    return [what, most](const RecordDatabase& records, const std::string& run) {
      pick_points(records, read_line(records, run), what, most);
    };
  };
  const auto bins = [](const Quantities& what) {
    return [what](const RecordDatabase& records, const std::string& run) {
      SeriesBins(what, 1000).follow(records, read_line(records, run));
    };
  };
  const Reading readings[] = {
      {"first and last step",
       [](const auto& records, const auto& run) { read_line(records, run); }},
      {"500 points of the loss", pick(one, 500)},
      {"100 points of the loss", pick(one, 100)},
      {"500 points of six columns", pick(six, 500)},
      {"1000 new rows of the loss",
       [&](const auto& records, const auto& run) {
         const auto line = read_line(records, run);
         points_after(records, line, one, line.last() - 1000, 1000);
       }},
      {"bins of the loss over all rows", bins(one)},
      {"bins of six columns over all rows", bins(six)},
      {"what `runs list` shows",
       [](const auto& records, const auto& run) { read_overview(records, run); }},
  };
  std::printf("| reading | ms a run, from disk | ms a run, from memory |\n| --- | --- | --- |\n");
  for (const auto& reading : readings) {
    std::vector<double> cold, warm;
    for (const auto& run : runs) {
      drop_from_cache(path);
      for (auto* times : {&cold, &warm}) {
        const RecordDatabase records(path, OpenMode::kReadOnly);
        times->push_back(milliseconds([&] { reading.read(records, run); }));
      }
    }
    std::printf("| %s | %.1f | %.1f |\n", reading.what, median(cold), median(warm));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: olmo_series_bench FOLDER [RUNS [STEPS]]\n");
    return 2;
  }
  const fs::path path = fs::path(argv[1]) / "series_bench.db";
  const int runs = argc > 2 ? std::atoi(argv[2]) : 4;
  const std::int64_t steps = argc > 3 ? std::atoll(argv[3]) : 1'000'000;
  if (!fs::exists(path)) {
    auto db = RunDb::open(path, OpenMode::kCreate);
    for (int i = 0; i < runs; ++i) make_run(db, "run " + std::to_string(i), steps);
  }
  std::vector<std::string> ids;
  RunDb::open(path, OpenMode::kReadOnly)
      .query("SELECT run_id FROM runs", {},
             [&](const auto&, const auto& row) { ids.push_back(std::get<std::string>(row[0])); });
  print_table(path, ids);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "olmo_series_bench: %s\n", error.what());
  return static_cast<int>(error.kind());
}
