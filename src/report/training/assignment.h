// Which recorded run belongs to which side of a comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/record/side.h"

namespace olmo::report {

/// What a record states of where it was made; empty: nothing.
struct Place {
  std::string cluster = {};
  std::string host = {};
  std::string hosts = {};  ///< the host's name up to its number: nid of nid001234
  std::string hardware = {};
};
Place place_of(const store::RecordedRun& run);

/// The config's seed; nothing for a log that does not tell one.
std::optional<std::uint64_t> seed_of(const store::RecordedRun& run);

/// It is tagged `noise…` or `repeat…`.
bool is_tagged_repeat(const store::RecordedRun& run);
/// Equal chains of hashes, or equal losses, as far as logs write them: at all steps of the shorter
/// one, at twenty common steps or more if either was cut, or one by one where they are numbered
/// otherwise. One run that is recorded twice, or the same training bit for bit.
bool is_same_run(const store::RecordedRun& a, const store::RecordedRun& b);

/// A run beside the two that are compared, and whose databases hold it.
struct Candidate {
  store::RecordedRun run;
  bool in_a = false, in_b = false;
};
/// The tagged repeats and the branches of both databases, by run id.
std::vector<Candidate> read_candidates(const Side& a, const SideRecords& in_a, const Side& b,
                                       const SideRecords& in_b);

/// `A`, `B`, or neither, with one sentence without its full stop that says how that is known.
struct Assigned {
  std::optional<char> side;
  std::string reason;
  bool by_database = false;  ///< nothing but the file tells
};
/// By a tag `side:NAME` of the run and of the compared ones; else by the cluster, the host, the
/// name of its hosts or the hardware, the first of them in which A and B differ and which the run
/// has in common with one; else by the database, where A's and B's are two and one of them alone
/// holds the run. A run whose record states a third place belongs to no side.
Assigned side_of(const Candidate& candidate, const store::RecordedRun& a,
                 const store::RecordedRun& b);

}  // namespace olmo::report
