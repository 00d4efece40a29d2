// Whether evaluations are what they ended as. That reads all their rows, so it is asked of a
// database again only once that has changed.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "serve/stamp.h"
#include "store/database/record_database.h"

namespace olmo::serve {

class KnownSeals {
 public:
  /// What was altered of an evaluation after it had ended; one sentence each. May be called by
  /// several threads. Throws as store::check_seals.
  std::vector<std::string> altered(const store::RecordDatabase& records,
                                   const std::string& evaluation_id);

 private:
  struct OfDatabase {
    Stamp stamp;
    std::map<std::string, std::vector<std::string>> altered;  ///< by evaluation
  };
  std::mutex mutex_;
  std::map<std::filesystem::path, OfDatabase> known_;
};

}  // namespace olmo::serve
