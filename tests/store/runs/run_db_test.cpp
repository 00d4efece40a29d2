#include "store/runs/run_db.h"

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/plain_records.h"
#include "store/runs/recorded_run.h"
#include "support/catch.h"
#include "support/forked.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::store;
using olmo::test::TemporaryDirectory;

namespace {

RunRecord a_run() {
  return {.name = "test",
          .config = R"({"seed":1})",
          .experiment_digest = "d",
          .seed = 1,
          .n_parameters = 10,
          .max_steps = 100};
}

StepRecord a_step(std::int64_t step, double ce_loss = 1.0) {
  StepRecord row;
  row.step = step;
  row.tokens = step * 8;
  row.ce_loss = ce_loss;
  row.batch_hash = "b" + std::to_string(step);
  row.chain_hash = "c" + std::to_string(step);
  return row;
}

std::vector<std::int64_t> steps_in(const RunDb& db, const std::string& sql) {
  std::vector<std::int64_t> steps;
  db.query(sql, {},
           [&](const auto&, const auto& row) { steps.push_back(std::get<std::int64_t>(row[0])); });
  return steps;
}

ErrorKind kind_of_open(const std::filesystem::path& path, OpenMode mode) {
  try {
    RunDb::open(path, mode);
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find(path.string()) != std::string::npos);
    return error.kind();
  }
  FAIL("opening " << path << " did not fail");
  return ErrorKind::kFailure;
}

}  // namespace

TEST_CASE("a peak that turns out higher corrects the mfu of the attempt's steps", "[store]") {
  const TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  auto attempt = test::plain_attempt();
  attempt.environment = R"({"host": "h", "peak_flops": 1e9, "peak_source": "measured: a"})";
  const auto run_id = db.begin_run(a_run(), attempt, {});
  const auto record_step = [&db](std::int64_t step) {
    auto row = a_step(step);
    row.mfu = 0.5;
    db.record_step(row);
  };
  record_step(1);
  db.resume_run(run_id, attempt, 100);
  record_step(2);
  db.record_peak(4e9, "measured: b");
  record_step(3);
  db.flush();
  std::vector<double> shares;
  db.query("SELECT mfu FROM steps ORDER BY step", {},
           [&](const auto&, const auto& row) { shares.push_back(std::get<double>(row[0])); });
  CHECK(shares == std::vector<double>{0.5, 0.125, 0.5});
  std::vector<std::string> environments;
  db.query(
      "SELECT environment FROM attempts ORDER BY attempt", {},
      [&](const auto&, const auto& row) { environments.push_back(std::get<std::string>(row[0])); });
  CHECK(environments[0] == attempt.environment);
  CHECK(environments[1] == R"({"host":"h","peak_flops":4000000000.0,"peak_source":"measured: b"})");
}

TEST_CASE("a step comes back with the same bits", "[store]") {
  const TemporaryDirectory folder;
  const double odd = std::nextafter(1.0 / 3.0, 1.0);
  const double tiny = std::numeric_limits<double>::denorm_min();
  {
    RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
    db.begin_run(a_run(), test::plain_attempt(), {});
    StepRecord row = a_step(1, odd);
    row.grad_norm = tiny;
    db.record_step(row);
  }
  const RunDb db = RunDb::open(folder / "run.db", OpenMode::kReadOnly);
  db.query("SELECT ce_loss, grad_norm, z_loss FROM steps", {}, [&](const auto&, const auto& row) {
    CHECK(std::get<double>(row[0]) == odd);
    CHECK(std::get<double>(row[1]) == tiny);
    CHECK(std::holds_alternative<std::monostate>(row[2]));
  });
}

TEST_CASE("every column of a step comes back as it was written", "[store]") {
  const TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  const auto id = db.begin_run(a_run(), test::plain_attempt(), {});
  StepRecord row{.attempt = 0,
                 .step = 1,
                 .epoch = 2,
                 .tokens = 3,
                 .lr = 4.5,
                 .ce_loss = 5.5,
                 .ce_loss_per_label = 6.5,
                 .z_loss = 7.5,
                 .loss = 8.5,
                 .grad_norm = 9.5,
                 .max_grad_norm = std::nullopt,
                 .clipping_rate = 10.5,
                 .param_norm = 11.5,
                 .masked_instances = 12,
                 .seconds = 13.5,
                 .tokens_per_second = 14.5,
                 .mfu = 15.5,
                 .batch_hash = "b",
                 .loss_hash = "l",
                 .chain_hash = "c"};
  db.record_step(row);
  db.flush();
  const auto found = read_steps(db.records(), id, 1, 1).at(1);
  row.attempt = 1;
  const auto text = [](const StepRecord& each) {
    std::ostringstream out;
    const auto number = [](const std::optional<double>& value) { return value.value_or(-1); };
    out << each.attempt << ' ' << each.step << ' ' << each.epoch << ' ' << each.tokens << ' '
        << each.lr << ' ' << each.ce_loss << ' ' << each.ce_loss_per_label << ' '
        << number(each.z_loss) << ' ' << each.loss << ' ' << each.grad_norm << ' '
        << number(each.max_grad_norm) << ' ' << number(each.clipping_rate) << ' ' << each.param_norm
        << ' ' << each.masked_instances << ' ' << each.seconds << ' ' << each.tokens_per_second
        << ' ' << number(each.mfu) << ' ' << each.batch_hash << ' ' << each.loss_hash << ' '
        << each.chain_hash;
    return out.str();
  };
  CHECK(text(found) == text(row));
  CHECK_FALSE(found.max_grad_norm);
  CHECK(steps_in(db, "SELECT tokens FROM steps") == std::vector<std::int64_t>{3});
}

TEST_CASE("an attempt's ranks and phases come back as they were written last", "[store]") {
  const TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  auto attempt = test::plain_attempt();
  attempt.world_size = 2;
  attempt.strategy = "FULL_SHARD";
  attempt.launch = "torchrun";
  const auto id = db.begin_run(a_run(), attempt, {});
  const auto rank = [](std::int64_t number, std::int64_t steps) {
    RankRecord row{.rank = number, .host = "h", .local_rank = 1, .pid = 2};
    row.device = "cpu";
    row.processor = "p";
    row.threads = 3;
    row.steps = steps;
    row.data_seconds = 0.5;
    row.compute_seconds = 1.5;
    row.gather_seconds = 2.5;
    row.exchange_seconds = 3.5;
    row.save_seconds = 4.5;
    row.wait_seconds = 5.5;
    row.gathered_bytes = 6;
    row.exchanged_bytes = 7;
    row.slowest_steps = 8;
    return row;
  };
  db.record_ranks({rank(0, 1), rank(1, 1)});
  db.record_ranks({rank(0, 9), rank(1, 9)});
  const PhaseRecord phase{.first_step = 1,
                          .last_step = 9,
                          .phase = "compute",
                          .mean = 0.2,
                          .least = 0.1,
                          .most = 0.3,
                          .rank = 1};
  db.record_phases({phase});
  db.flush();
  const RecordedRun run = read_run(db.records(), id);
  CHECK(run.attempts.at(0).world_size == 2);
  CHECK(run.attempts.at(0).strategy == "FULL_SHARD");
  CHECK(run.attempts.at(0).launch == "torchrun");
  REQUIRE(run.ranks.size() == 2);
  const RankRecord& last = run.ranks.back();
  CHECK((last.attempt == 1 && last.rank == 1 && last.host == "h" && last.local_rank == 1));
  CHECK((last.pid == 2 && last.device == "cpu" && last.processor == "p" && last.threads == 3));
  CHECK((last.steps == 9 && last.slowest_steps == 8));
  CHECK((last.data_seconds == 0.5 && last.compute_seconds == 1.5 && last.gather_seconds == 2.5));
  CHECK((last.exchange_seconds == 3.5 && last.save_seconds == 4.5 && last.wait_seconds == 5.5));
  CHECK((last.gathered_bytes == 6 && last.exchanged_bytes == 7));
  REQUIRE(run.phases.size() == 1);
  const PhaseRecord& found = run.phases.front();
  CHECK((found.first_step == 1 && found.last_step == 9 && found.phase == "compute"));
  CHECK((found.mean == 0.2 && found.least == 0.1 && found.most == 0.3 && found.rank == 1));
}

TEST_CASE("the same sensor of two hosts has two rows", "[store]") {
  const TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  const auto id = db.begin_run(a_run(), test::plain_attempt(), {});
  EnergyRecord node{.source = "pm_counters", .device = "node", .covers = "node", .joules = 1.0};
  std::vector<EnergyRecord> rows;
  for (const char* host : {"b", "a"}) {
    node.host = host;
    rows.push_back(node);
  }
  db.record_energy(rows);
  db.flush();
  const auto energy = read_run(db.records(), id).energy;
  REQUIRE(energy.size() == 2);
  CHECK(energy[0].host == "a");
  CHECK(energy[1].host == "b");
}

TEST_CASE("the run is on disk before its first step", "[store]") {
  const TemporaryDirectory folder;
  RunDb writer = RunDb::open(folder / "run.db", OpenMode::kCreate);
  const auto id = writer.begin_run(a_run(), test::plain_attempt(), {{"tokens", "a.npy", 2, "ff"}});
  const RunDb reader = RunDb::open(folder / "run.db", OpenMode::kReadOnly);
  CHECK(reader.find_run("") == id);
  CHECK(reader.run(id).config == R"({"seed":1})");
  CHECK(steps_in(reader, "SELECT bytes FROM inputs") == std::vector<std::int64_t>{2});
}

TEST_CASE("a resumed run continues its record and keeps what it abandoned", "[store]") {
  const TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  const auto id = db.begin_run(a_run(), test::plain_attempt(), {});
  for (int step = 1; step <= 5; ++step) db.record_step(a_step(step));
  db.flush();
  db.resume_run(id, test::plain_attempt(3), 200);
  CHECK(db.run(id).max_steps == 200);  // as the latest attempt has it
  db.record_step(a_step(4, 2.0));
  db.flush();
  CHECK(steps_in(db, "SELECT step FROM surviving_steps ORDER BY step") ==
        std::vector<std::int64_t>{1, 2, 3, 4});
  CHECK(steps_in(db, "SELECT attempt FROM surviving_steps ORDER BY step") ==
        std::vector<std::int64_t>{1, 1, 1, 2});
  CHECK(steps_in(db, "SELECT count(*) FROM steps") == std::vector<std::int64_t>{6});
}

TEST_CASE("two processes write their runs into one database", "[store]") {
  const TemporaryDirectory folder;
  const auto write = [&] {
    RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
    db.begin_run(a_run(), test::plain_attempt(), {});
    for (int step = 1; step <= 50; ++step) {
      db.record_step(a_step(step));
      db.flush();
    }
  };
  const pid_t child = olmo::test::fork_briefly();
  if (child == 0) {
    write();
    ::_exit(0);
  }
  write();
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  const RunDb db = RunDb::open(folder / "run.db", OpenMode::kReadOnly);
  CHECK(steps_in(db, "SELECT count(*) FROM steps GROUP BY run_id") ==
        std::vector<std::int64_t>{50, 50});
}

TEST_CASE("a killed writer loses no flushed row and leaves a sound database", "[store]") {
  const TemporaryDirectory folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = olmo::test::fork_briefly();
  if (child == 0) {
    try {
      RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
      db.begin_run(a_run(), test::plain_attempt(), {});
      for (int step = 1;; ++step) {
        db.record_step(a_step(step));
        db.flush();
        if (step == 20 && ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
    } catch (const Error&) {
      ::_exit(1);
    }
  }
  ::close(ready[1]);
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  const RunDb db = RunDb::open(folder / "run.db", OpenMode::kReadWrite);
  CHECK(steps_in(db, "SELECT count(*) FROM steps").front() >= 20);
  db.query("PRAGMA integrity_check", {},
           [](const auto&, const auto& row) { CHECK(std::get<std::string>(row[0]) == "ok"); });
}

TEST_CASE("a run is found by an unambiguous prefix", "[store]") {
  const TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  const auto first = db.begin_run(a_run(), test::plain_attempt(), {});
  db.begin_run(a_run(), test::plain_attempt(), {});  // both ids begin with the year
  CHECK(db.find_run(first) == first);
  CHECK_THROWS_AS(db.find_run("2"), Error);
  CHECK_THROWS_AS(db.find_run("nothing"), Error);
}

TEST_CASE("a database of a newer schema is refused", "[store]") {
  const TemporaryDirectory folder;
  RunDb::open(folder / "run.db", OpenMode::kCreate);
  Database(folder / "run.db", OpenMode::kReadWrite).execute("PRAGMA user_version = 999");
  CHECK(kind_of_open(folder / "run.db", OpenMode::kReadWrite) == ErrorKind::kDamaged);
}

TEST_CASE("a foreign database and a file that is none are refused and left alone", "[store]") {
  const TemporaryDirectory folder;
  Database(folder / "other.db", OpenMode::kCreate).execute("CREATE TABLE t (a)");
  CHECK(kind_of_open(folder / "other.db", OpenMode::kCreate) == ErrorKind::kDamaged);
  std::ofstream(folder / "text.db") << std::string(5000, 'x');
  CHECK(kind_of_open(folder / "text.db", OpenMode::kCreate) == ErrorKind::kDamaged);
  CHECK(read_file(folder / "text.db") == std::string(5000, 'x'));
}

TEST_CASE("a missing database, a folder and an unwritable place are named", "[store]") {
  const TemporaryDirectory folder;
  CHECK(kind_of_open(folder / "none.db", OpenMode::kReadOnly) == ErrorKind::kUsage);
  CHECK(kind_of_open(folder.path(), OpenMode::kCreate) == ErrorKind::kUsage);
  CHECK(kind_of_open(folder / "no/such/folder.db", OpenMode::kCreate) == ErrorKind::kUsage);
}

TEST_CASE("a database without tables, or none, holds nothing that could be gone on with",
          "[store]") {
  const TemporaryDirectory folder;
  CHECK_FALSE(holds_tables(folder / "run.db"));
  std::ofstream(folder / "run.db").close();
  CHECK_FALSE(holds_tables(folder / "run.db"));
  Database(folder / "run.db", OpenMode::kCreate).execute("PRAGMA journal_mode = WAL");
  CHECK_FALSE(holds_tables(folder / "run.db"));
  RunDb::open(folder / "run.db", OpenMode::kCreate);
  CHECK(holds_tables(folder / "run.db"));
}

TEST_CASE("a RUN that is longer than any file name is no such database", "[store]") {
  const auto name = parse_run_name(std::string(5000, 'x') + ":2026");
  CHECK(kind_of_open(name.database, OpenMode::kReadOnly) == ErrorKind::kUsage);
}

TEST_CASE("a flipped byte anywhere is an error or harmless, never a crash", "[store]") {
  const TemporaryDirectory folder;
  {
    RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
    db.begin_run(a_run(), test::plain_attempt(), {});
    for (int step = 1; step <= 20; ++step) db.record_step(a_step(step));
  }
  const std::string sound = read_file(folder / "run.db");
  for (std::size_t at = 0; at < sound.size(); at += 97) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    std::ofstream(folder / "damaged.db", std::ios::binary) << damaged;
    try {
      const RunDb db = RunDb::open(folder / "damaged.db", OpenMode::kReadOnly);
      db.query("SELECT * FROM surviving_steps", {}, [](const auto&, const auto&) {});
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDamaged);
    }
  }
}

TEST_CASE("a RUN is a file, a file with an id, or a run directory", "[store]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "a.db") << "";
  CHECK(parse_run_name((folder / "a.db").string()).database == folder / "a.db");
  const auto with_id = parse_run_name((folder / "a.db").string() + ":2026");
  CHECK(with_id.database == folder / "a.db");
  CHECK(with_id.run == "2026");
  CHECK(parse_run_name(folder.path().string()).database == folder / "run.db");
}
