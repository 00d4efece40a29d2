// Records of runs that somebody else has written, as they are shown and exported, and the requests
// for them.
#include <array>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "exports/tools.h"
#include "fuzz/target.h"
#include "monitor/run_view.h"
#include "serve/gate.h"
#include "serve/site.h"
#include "store/database/sqlite.h"
#include "store/runs/run_db.h"

namespace olmo::fuzz {
namespace {

/// The texts of a record that reach pages and files, a line of the input each.
constexpr std::array<const char*, 13> kTexts = {
    "UPDATE runs SET name = ?",
    "UPDATE runs SET config = ?",
    "UPDATE runs SET experiment_digest = ?",
    "UPDATE runs SET created_utc = ?",
    "UPDATE attempts SET environment = ?",
    "UPDATE attempts SET policy = ?",
    "UPDATE attempts SET build = ?",
    "UPDATE attempts SET command_line = ?",
    "UPDATE attempts SET started_utc = ?",
    "UPDATE metrics SET name = ?",
    "UPDATE events SET message = ?",
    "UPDATE checkpoints SET path = ?",
    "UPDATE tags SET tag = ?",
};

std::filesystem::path record_path() { return scratch_folder() / "records" / "run.db"; }

/// A run of three steps with a row in each table that kTexts change.
void write_record() {
  std::filesystem::create_directories(record_path().parent_path());
  store::RunDb db = store::RunDb::open(record_path(), store::OpenMode::kCreate);
  const auto id = db.begin_run({.name = "a run",
                                .config = "{}",
                                .experiment_digest = "experiment",
                                .seed = 1,
                                .n_parameters = 10,
                                .max_steps = 3},
                               {.start_step = 0,
                                .command_line = "train",
                                .policy = "{}",
                                .build = "{}",
                                .environment = "{}"},
                               {});
  for (std::int64_t step = 1; step <= 3; ++step) {
    store::StepRecord row;
    row.step = step;
    row.ce_loss = row.loss = 1;
    row.batch_hash = row.chain_hash = "0";
    db.record_step(row);
  }
  db.record_metric(3, "eval/x", 1);
  db.event(3, "note", "a message");
  db.record_checkpoint({.step = 3, .path = "step3", .sha256 = "0"});
  db.tag(id, "a tag", /*remove=*/false);
  db.end_attempt("finished");
  db.flush();
}

void change_record(const std::string& input) {
  store::Database db(record_path(), store::OpenMode::kReadWrite);
  db.execute("PRAGMA ignore_check_constraints = ON");  // an attacker's database has none
  std::istringstream lines(input);
  std::string line;
  for (const char* sql : kTexts) {
    if (!std::getline(lines, line)) return;
    db.prepare(sql).bind(1, line).step();
  }
}

void show_record(const std::string& input) {
  static const bool written = (write_record(), true);
  (void)written;
  try {
    change_record(input);
  } catch (const Error&) {  // the same tag twice and the like
  }
  store::RunDb db = store::RunDb::open(record_path(), store::OpenMode::kReadOnly);
  const auto id = db.find_run("");
  (void)monitor::read_run_view(db.records(), id);
  const exports::Source source{
      .facts = exports::read_facts(db, id),
      .points = [&](const exports::OnPoint& visit) { exports::for_each_point(db, id, visit); }};
  for (const auto& tool : exports::tools()) {
    const auto folder = scratch_folder() / "exports" / tool;
    const auto exported = exports::export_run(source, tool, folder, "project");
    const auto inside = std::filesystem::relative(exported.path, folder);
    if (inside.empty() || *inside.begin() == "..") std::abort();  // out of its folder
    std::filesystem::remove_all(folder);
  }
  serve::Site site({record_path().parent_path()});
  const auto runs = site.catalog().listing(std::chrono::seconds(20))->runs;
  for (const auto& run : runs) {
    for (const char* page : {"", "/curves", "/evaluations", "/config", "/config.json"})
      (void)site.answer({.path = "/run/" + run.key + page});
  }
  (void)site.answer({.path = "/"});
}

/// Method, target and headers, a line each.
void ask(const std::string& input) {
  std::istringstream lines(input);
  serve::RequestFacts facts;
  for (std::string* text : {&facts.method, &facts.target, &facts.host, &facts.cookie,
                            &facts.authorization, &facts.fetch_site, &facts.fetch_mode})
    std::getline(lines, *text);
  for (const char* token : {"", "0123456789abcdef"}) {
    serve::Request request;
    const serve::Gate gate{.names = {"nid1"}, .token = token, .port = 8321};
    const auto refused = serve::refusal(gate, facts, request);
    if (refused) {
      for (const auto& [name, value] : refused->headers)
        if (value.find_first_of("\r\n") != std::string::npos) std::abort();
      continue;
    }
    if (!request.path.starts_with('/')) std::abort();
    const auto again = serve::parse_target(serve::url_encoded(request.path));
    (void)again;
  }
}

std::vector<std::string> request_seeds() {
  return {"GET\n/run/a%20b?x=1&y=%c3%a9&y=+\nlocalhost:8321\n\n\nsame-origin\nnavigate\n",
          "HEAD\n/?token=0123456789abcdef\n[::1]:8321\nolmo-8321=0123456789abcdef\nBearer "
          "0123456789abcdef\nnone\n\n",
          "GET\n//evil.example/..%2f..%2fetc?token=0123456789abcdef&a\nnid1.\n"};
}

}  // namespace

std::vector<Target> record_targets() {
  return {{"run_record", 1 << 11, show_record,
           [] {
             return std::vector<std::string>{
                 "a run\n{}\nx\n2026-01-02T03:04:05Z\n{\"host\": \"nid1\", \"processor\": "
                 "\"x\"}\n{\"numerics\": \"portable\", \"threads\": 2}\n{\"revision\": "
                 "\"x\"}\ntrain a.json\n2026-01-02T03:04:05Z\ntrain/x\nmessage\n/tmp/step3\nx\n",
                 "../../x\n{\"model\": {\"d_model\": 64}, \"a/b\": [1, null, \"<b>\"]}\n\n-1\n[]\n"
                 "1\nnull\n<script>\n9999-99-99\n\x1b[2J\n&amp;\n/../..\n\"\n"};
           }},
          {"request", 1 << 10, ask, request_seeds}};
}

}  // namespace olmo::fuzz
