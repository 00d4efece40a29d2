// trackio's database: one file a project (store/runs/trackio_db.h).
#include <cctype>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/files/recorded_json.h"
#include "core/text/utc_time.h"
#include "exports/tools.h"
#include "store/runs/trackio_db.h"

namespace olmo::exports {
namespace {

namespace fs = std::filesystem;

/// The name of a project's file as trackio makes it; only ASCII, which it is on every system.
std::string file_of(const std::string& project) {
  std::string name;
  for (const char c : project) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '_')) name += c;
  }
  return (name.empty() ? "default" : name) + ".db";
}

std::string iso_time(double unix_seconds) {
  using Clock = std::chrono::system_clock;
  const std::chrono::duration<double> since(unix_seconds);
  std::string text = utc_text(Clock::time_point(std::chrono::floor<Clock::duration>(since)), 6);
  text.pop_back();
  return text + "+00:00";
}

/// Numbers that JSON lacks are texts to trackio.
Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace

Exported write_trackio(const Source& source, const fs::path& folder, const std::string& project) {
  const RunFacts& facts = source.facts;
  make_folders(folder);
  Exported exported;
  exported.path = folder / file_of(project);
  Json config = recorded_json(facts.config);
  if (!config.is_object()) config = Json::object();
  config["_Created"] = iso_time(facts.begin);
  config["_Username"] = "olmo-harness";
  config["olmo_harness_status"] = facts.status;
  config["olmo_harness_tags"] = facts.tags;
  Json machine = Json::object();
  for (const auto& fact : facts.machine) machine[fact.name] = fact.text;
  config["olmo_harness"] = std::move(machine);
  UnfinishedOutput unfinished(exported.path.string());
  store::TrackioDb db(exported.path);
  db.begin_run({.run_id = facts.run_id,
                .name = facts.name,
                .config = json_text(config),
                .created = iso_time(facts.begin)});
  source.points([&](const Point& point) {
    end_if_asked();
    Json numbers = Json::object();
    for (const auto& number : point.numbers) numbers[number.name] = json_number(number.value);
    db.add_step(point.step, iso_time(point.unix_seconds), json_text(numbers));
    ++exported.steps;
    exported.numbers += std::ssize(point.numbers);
  });
  unfinished.take_names();
  db.commit();
  return exported;
}

}  // namespace olmo::exports
