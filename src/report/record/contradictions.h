// Columns of a run's record that its own config, or its other rows, contradict. No hash chain is
// over them, and yet seeds pair repeats, sizes choose a published deviation, and tokens set curves
// against each other.
#pragma once

#include <string>
#include <vector>

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// What is wrong with a record whose config has another digest than the recorded one.
inline constexpr char kAlteredConfig[] =
    "the config in the record, or its digest, is not the one that the run was begun with: it was "
    "altered, or is damaged";

/// One sentence each, without its full stop: the column and both values; or that the config is not
/// that of its digest. Nothing for a config that this program cannot read, unless it is no JSON
/// object, for an older format of the record, and of a log but its seed.
std::vector<std::string> contradictions_of(const store::RecordedRun& run);

/// Why nothing was held to the config, neither here nor by missing_rows, as follows "the record";
/// empty: all was, or it is that of a log.
std::string unchecked_of(const store::RecordedRun& run);
/// The same where its config is why, which keeps a claim at CONSISTENT; empty, too, for an older
/// format of the record, which is told and no more, as an evaluation without seals.
std::string unread_config_of(const store::RecordedRun& run);

}  // namespace olmo::report
