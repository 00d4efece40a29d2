// What the end-to-end tests share: the tiny config on tokens of our own, run through the binary,
// and the facts that a run recorded.
#pragma once

#include "core/files/json.h"
#include "core/hash.h"
#include "store/runs/run_db.h"
#include "support/stopping_child.h"
#include "support/temporary_directory.h"

namespace olmo::test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A small model, its tokenizer, and what the reference evaluators make of it.
inline const fs::path kGolden = fs::path(OLMO_TEST_DATA) / "eval/golden";

inline Ended harness(const fs::path& output, Words arguments,
                     std::optional<rlim_t> file_size = std::nullopt) {
  arguments.insert(arguments.begin(), OLMO_BINARY);
  return Child(arguments, output, file_size).wait();
}

/// 64 sequences of 32 ids below 499.
template <typename Id>
std::vector<Id> token_ids(std::uint64_t count = 64 * 32) {
  std::vector<Id> ids(count);
  for (std::uint64_t i = 0; i < count; ++i)
    ids[i] = static_cast<Id>((i * 2654435761U % (std::uint64_t{1} << 32) >> 16) % 499);
  return ids;
}

template <typename Id>
void write_tokens(const fs::path& path, const std::vector<Id>& ids) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(Id)));
}

/// What two runs that computed the same have in common: the hash chain over all their steps, and
/// every tensor of the state after the last one.
struct Proof {
  std::string chain;
  std::string state;  ///< SHA-256 over name and hash of all weights and moments
  friend bool operator==(const Proof&, const Proof&) = default;
};

/// A run directory's database, read in this process.
class Record {
 public:
  explicit Record(const fs::path& database)
      : db_(store::RunDb::open(database, store::OpenMode::kReadOnly)) {}

  /// The rows of a query without parameters, as text with the columns joined by `|`.
  [[nodiscard]] Words rows(const std::string& sql) const {
    Words rows;
    db_.query(sql, {}, [&](const auto&, const auto& values) {
      std::string row;
      for (const auto& value : values) row += (row.empty() ? "" : "|") + text(value);
      rows.push_back(row);
    });
    return rows;
  }
  [[nodiscard]] std::string value(const std::string& sql) const {
    const auto found = rows(sql);
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " rows";
  }
  [[nodiscard]] std::vector<double> numbers(const std::string& sql) const {
    std::vector<double> numbers;
    db_.query(sql, {},
              [&](const auto&, const auto& row) { numbers.push_back(std::get<double>(row[0])); });
    return numbers;
  }
  [[nodiscard]] Proof proof() const {
    Sha256 hash;
    for (const auto& row : rows("SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = "
                                "(SELECT max(step) FROM steps) ORDER BY part, name"))
      hash.update(row + "\n");
    return {value("SELECT chain_hash FROM surviving_steps ORDER BY step DESC LIMIT 1"),
            hash.finish().hex()};
  }
  /// "1..20" if the record has every step once, else what is there.
  [[nodiscard]] std::string steps() const {
    return value(
        "SELECT min(step) || '..' || max(step) || CASE count(*) WHEN max(step) - "
        "min(step) + 1 THEN '' ELSE ', but ' || count(*) || ' rows' END "
        "FROM surviving_steps");
  }

 private:
  static std::string text(const store::SqlValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return std::to_string(*real);
    if (const auto* words = std::get_if<std::string>(&value)) return *words;
    return "NULL";
  }
  store::RunDb db_;
};

/// A folder with token files, in which the tiny config is trained. One thread, twenty steps, saves
/// at 0, 10 and 20 unless a test says otherwise.
class Scene {
 public:
  Scene() { write_tokens(folder_ / "tokens.npy", token_ids<std::uint16_t>()); }

  [[nodiscard]] fs::path operator/(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] Words command(const std::string& name, const Words& more) const {
    Words words = {OLMO_BINARY,
                   "train",
                   OLMO_SOURCE_DIR "/configs/train/tiny.json",
                   "data.paths=[" + (folder_ / "tokens.npy").string() + "]",
                   "threads=1",
                   "--run-dir",
                   (folder_ / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// Trains to the end of the process in the run directory `name`.
  [[nodiscard]] Ended train(const std::string& name, const Words& more = {},
                            std::optional<rlim_t> file_size = std::nullopt) const {
    return Child(command(name, more), folder_ / (name + "-log"), file_size).wait();
  }
  /// Holds the run at the moments named `moment` (stopping_child.h) until `due()` holds at one, and
  /// sends `signal` there.
  template <typename Due>
  Ended train_until(const std::string& name, const Words& more, int signal,
                    const std::string& moment, const Due& due) const {
    StoppingChild child(command(name, more), folder_ / (name + "-log"), moment);
    if (child.stops_when(due)) child.signal(signal);
    return child.wait();
  }
  [[nodiscard]] Record record(const std::string& name) const {
    return Record(folder_ / name / "run.db");
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace olmo::test
