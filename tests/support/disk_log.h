// What a disk may hold after the power failed, from the log of fault_shim.h.
#pragma once

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/fault_shim.h"

namespace olmo::test {

/// Of what was not synced: what survives.
enum class PowerLoss {
  kNothing,  ///< all of it: the process was killed, the machine went on
  kAll,      ///< only what was synced: data by their file, names by their folder
  kData,     ///< names survive, data do not
  kNames,    ///< data survive, names do not
  kRandom,   ///< some names and some of the writes, in any order
};

/// The disk below one folder, change by change.
class DiskLog {
 public:
  /// `root`: the folder that OLMO_FAULT_FOLDER named; it was empty when the log began.
  DiskLog(const std::filesystem::path& log, std::filesystem::path root);

  struct Change {
    FaultRecord head;
    std::string path, data;
  };
  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }
  /// Applies the next change; false at the end.
  bool next();
  [[nodiscard]] std::size_t applied() const { return applied_; }
  /// Makes the state after the changes so far in `target`, which is emptied before.
  void write(const std::filesystem::path& target, PowerLoss loss, std::mt19937& random) const;

 private:
  struct Node {
    enum class Kind { kFile, kFolder, kLink };
    explicit Node(Kind of) : kind(of) {}
    Kind kind;
    std::string content, synced;  ///< of a file; of a link: where it leads
    std::vector<std::pair<std::int64_t, std::string>> unsynced;  ///< writes; -1: a new length
    std::map<std::string, std::size_t> entries, synced_entries;  ///< of a folder
  };
  void apply(const Change& change);
  std::size_t add(Node::Kind kind, std::uint64_t inode, const std::string& path);
  std::map<std::string, std::size_t>& folder_of(const std::string& path);
  Node& node_at(const std::string& path);
  void write_folder(const Node& folder, const std::filesystem::path& target, PowerLoss loss,
                    std::mt19937& random) const;
  static std::string content_of(const Node& file, PowerLoss loss, std::mt19937& random);

  std::filesystem::path root_;
  std::vector<Change> changes_;
  std::size_t applied_ = 0;
  std::vector<Node> nodes_;
  std::map<std::uint64_t, std::size_t> by_inode_;
};

}  // namespace olmo::test
