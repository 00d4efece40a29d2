// MLflow's file store: a folder for each experiment and run, a file for each metric (lines "time
// value step"), parameter and tag.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "core/text/text.h"
#include "exports/tools.h"

namespace olmo::exports {
namespace {

namespace fs = std::filesystem;

std::string hex_of(const std::string& text) {
  Sha256 hash;
  hash.update(text);
  return hash.finish().hex();
}

/// Of an experiment: digits, as MLflow makes them.
std::string experiment_id(const std::string& project) {
  constexpr std::size_t kDigits = 15;  // of hexadecimal: 18 of decimal at most
  return std::to_string(std::stoull(hex_of(project).substr(0, kDigits), nullptr, 16));
}

std::string yaml_text(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::string milliseconds(double unix_seconds) {
  return std::to_string(static_cast<std::int64_t>(unix_seconds * 1000));
}

/// As a URI wants it; only what a path of ours may need is left as it is.
std::string uri_of(const fs::path& path) {
  std::string uri = "file://";
  for (const char c : fs::absolute(path).lexically_normal().string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) ||
                       std::string_view("/-_.~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : formatted("%%%02X", byte);
  }
  return uri;
}

/// A name that MLflow allows as a path below the run: no part of it leads up or is hidden.
std::string path_of(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  std::string path, part;
  const auto end_part = [&] {
    if (!part.empty() && part != "." && part != "..") path += (path.empty() ? "" : "/") + part;
    part.clear();
  };
  for (const char c : name.substr(0, kLongest)) {
    if (c == '/') {
      end_part();
    } else {
      const bool plain = (static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0) ||
                         std::string_view("_-. ").find(c) != std::string_view::npos;
      part += plain ? c : '_';
    }
  }
  end_part();
  return path.empty() ? "_" : path;
}

/// The files of one kind. A name that is a file may not be another's folder, too.
class NamedFiles {
 public:
  explicit NamedFiles(fs::path folder) : folder_(std::move(folder)) { make_folders(folder_); }

  void append(const std::string& name, const std::string& text) {
    File& file = file_of(name);
    file.waiting += text;
    constexpr std::size_t kMost = std::size_t{1} << 18;
    if (file.waiting.size() > kMost) write(file);
  }
  void finish() {
    for (auto& [name, file] : files_) {
      write(file);
      fsync_path(file.path);
    }
  }

 private:
  struct File {
    fs::path path;
    std::string waiting;
  };

  File& file_of(const std::string& name) {
    const auto found = files_.find(name);
    if (found != files_.end()) return found->second;
    std::string path = path_of(name);
    if (lies_in_file(path)) std::ranges::replace(path, '/', '_');
    while (taken_.contains(path) || folders_.contains(path)) path += "_";
    taken_.insert(path);
    for (fs::path above = fs::path(path).parent_path(); !above.empty(); above = above.parent_path())
      folders_.insert(above.string());
    make_folders((folder_ / path).parent_path());
    return files_[name] = {.path = folder_ / path, .waiting = {}};
  }
  bool lies_in_file(const std::string& path) const {
    for (fs::path above = fs::path(path).parent_path(); !above.empty(); above = above.parent_path())
      if (taken_.contains(above.string())) return true;
    return false;
  }
  static void write(File& file) {
    std::ofstream out(file.path, std::ios::binary | std::ios::app);
    out << file.waiting;
    out.close();
    if (!out)
      throw Error(ErrorKind::kFailure,
                  file.path.string() + ": cannot be written: " + std::strerror(errno));
    file.waiting.clear();
  }

  fs::path folder_;
  std::map<std::string, File> files_;
  std::set<std::string> taken_, folders_;
};

void write_experiment(const fs::path& folder, const std::string& id, const std::string& project,
                      double begin) {
  const fs::path meta = folder / "meta.yaml";
  std::error_code none;
  if (fs::exists(meta, none)) return;
  make_folders(folder);
  write_file_atomically(meta, "artifact_location: " + uri_of(folder) +
                                  "\ncreation_time: " + milliseconds(begin) + "\nexperiment_id: '" +
                                  id + "'\nlast_update_time: " + milliseconds(begin) +
                                  "\nlifecycle_stage: active\nname: " + yaml_text(project) + "\n");
}

/// MLflow's numbers of how a run ended.
int status_of(const std::string& status) {
  constexpr int kOfRunning = 1, kOfFinished = 3, kOfFailed = 4, kOfKilled = 5;
  if (status == "running") return kOfRunning;
  if (status == "finished") return kOfFinished;
  return status == "stopped" || status == kKilled ? kOfKilled : kOfFailed;
}

std::string meta_of(const RunFacts& facts, const std::string& experiment, const std::string& id,
                    const fs::path& path) {
  return "artifact_uri: " + uri_of(path / "artifacts") +
         "\nend_time: " + (facts.end > 0 ? milliseconds(facts.end) : "null") +
         "\nentry_point_name: ''\nexperiment_id: '" + experiment +
         "'\nlifecycle_stage: active\nrun_id: " + id + "\nrun_name: " + yaml_text(facts.name) +
         "\nrun_uuid: " + id +
         "\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: " +
         milliseconds(facts.begin) + "\nstatus: " + std::to_string(status_of(facts.status)) +
         "\ntags: []\nuser_id: olmo-harness\n";
}

}  // namespace

Exported write_mlflow(const Source& source, const fs::path& folder, const std::string& project) {
  constexpr std::size_t kIdDigits = 32, kLongestParameter = 6000;
  const RunFacts& facts = source.facts;
  const std::string experiment = experiment_id(project);
  const std::string id = hex_of(facts.run_id).substr(0, kIdDigits);
  Exported exported;
  exported.path = folder / experiment / id;
  write_experiment(folder / experiment, experiment, project, facts.begin);
  OutputFolder output(exported.path, OutputFolder::Existing::kReplaced);
  make_folders(output.path() / "artifacts");
  NamedFiles parameters(output.path() / "params"), tags(output.path() / "tags"),
      metrics(output.path() / "metrics");
  for (const auto& setting : facts.settings)
    parameters.append(setting.name, std::string(utf8_beginning(setting.text, kLongestParameter)));
  tags.append("mlflow.runName", facts.name);
  tags.append("olmo_harness.run_id", facts.run_id);
  for (const auto& fact : facts.machine) tags.append("olmo_harness." + fact.name, fact.text);
  for (const auto& tag : facts.tags) tags.append(tag, "true");
  source.points([&](const Point& point) {
    const std::string time = milliseconds(point.unix_seconds), step = std::to_string(point.step);
    for (const auto& number : point.numbers)
      metrics.append(number.name, time + " " + exact_number(number.value) + " " + step + "\n");
    ++exported.steps;
    exported.numbers += std::ssize(point.numbers);
  });
  parameters.finish();
  tags.finish();
  metrics.finish();
  write_file_atomically(output.path() / "meta.yaml", meta_of(facts, experiment, id, exported.path));
  output.publish();
  return exported;
}

}  // namespace olmo::exports
