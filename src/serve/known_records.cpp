#include "serve/known_records.h"

#include <algorithm>

#include <sys/resource.h>

#include "store/database/record_database.h"

namespace olmo::serve {
namespace {

/// Reading costs at most a twentieth of a processor, for a run that goes on as well.
constexpr int kRest = 20;
/// A server that is to end waits for the run that is being read: some seconds at most.
constexpr std::int64_t kMostSteps = 100'000;
/// Pages are answered first.
constexpr int kCheckNiceness = 19;

report::RecordCheck read(const std::filesystem::path& database, const std::string& run_id) {
  try {
    const store::RecordDatabase records(database, store::OpenMode::kGlance);
    return report::check_short_record(records, run_id, kMostSteps);
  } catch (const std::exception& error) {
    return {.reason = std::string("could not be read: ") + error.what()};
  }
}

}  // namespace

KnownRecords::~KnownRecords() {
  {
    const std::lock_guard held(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

report::RecordCheck KnownRecords::of(const std::filesystem::path& database,
                                     const std::string& run_id, const Stamp& stamp) {
  const std::lock_guard held(mutex_);
  const Place place{database, run_id};
  const auto [found, is_new] = known_.try_emplace(place);
  Known& known = found->second;
  const bool is_due = is_new || (!(known.stamp == stamp) && Clock::now() >= known.due);
  if (is_due && !known.waits) {
    known.waits = true;
    waiting_.push_back(place);
    changed_.notify_all();
  }
  return known.check;
}

void KnownRecords::work() {
  ::setpriority(PRIO_PROCESS, 0, kCheckNiceness);  // on Linux that of the calling thread
  std::unique_lock held(mutex_);
  while (true) {
    changed_.wait(held, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const Place place = std::move(waiting_.front());
    waiting_.pop_front();
    held.unlock();
    const auto begun = Clock::now();
    // Taken first: what is written meanwhile makes it be read again.
    const Stamp stamp = stamp_of(place.first);
    auto check = read(place.first, place.second);
    const auto rest = std::max<Clock::duration>(stays_fresh_, kRest * (Clock::now() - begun));
    held.lock();
    known_[place] = {
        .stamp = stamp, .check = std::move(check), .due = Clock::now() + rest, .waits = false};
  }
}

}  // namespace olmo::serve
