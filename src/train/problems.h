#pragma once

#include <string>
#include <vector>

#include "core/error.h"

namespace olmo::train {

/// What keeps a run from starting: every check says its own, so that a user meets all of them at
/// once.
class Problems {
 public:
  /// Runs a check. An Error that it throws is kept, as add() says, and false returned.
  template <class Check>
  bool check(const Check& run) {
    try {
      run();
      return true;
    } catch (const Error& error) {
      add(error);
      return false;
    }
  }
  /// A message of several lines is as many problems; indented lines belong to the one above. The
  /// same one is kept once.
  void add(const Error& problem);

  [[nodiscard]] const std::vector<Error>& all() const { return all_; }
  /// Throws if there is any: a single one as it is, several with a line each and the kind of the
  /// first.
  void throw_if_any() const;

 private:
  void keep(ErrorKind kind, const std::string& message);

  std::vector<Error> all_;
};

}  // namespace olmo::train
