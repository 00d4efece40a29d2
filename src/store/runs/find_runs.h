// Where the databases of runs lie below a folder: what `runs list DIR` and `serve DIR` show.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace olmo::store {

/// How far a search goes, so that a folder such as / costs seconds and not hours.
struct FindLimits {
  int depth = 8;            ///< levels below a folder that was named
  int folders = 1'000'000;  ///< that are looked into
};

struct FoundDatabases {
  /// Sorted as their paths, each file once, under its own name where that is found beside links to
  /// it. They were not opened: one may be damaged, and is gone if its run is removed meanwhile.
  std::vector<std::filesystem::path> databases;
  /// What could not be looked into; a sentence each that begins with the path.
  std::vector<std::string> warnings;
};

/// The databases at `places`: a place is a database, which is taken as it is, or a folder. Below a
/// folder these are `run.db`, whatever it holds, and `NAME.db`, if it says that it is ours or
/// cannot be read. Links are followed, each folder is looked into once. Left out are folders whose
/// name begins with a dot, and checkpoints. Throws nothing that a place may cause.
FoundDatabases find_databases(const std::vector<std::filesystem::path>& places,
                              const FindLimits& limits = {});

}  // namespace olmo::store
