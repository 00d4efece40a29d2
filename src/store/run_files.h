// Names in the folder of a run.
#pragma once

namespace olmo::store {

inline constexpr char kRunDatabaseName[] = "run.db";
/// The link to the newest checkpoint, and the word that stands for it.
inline constexpr char kLatestName[] = "latest";

}  // namespace olmo::store
