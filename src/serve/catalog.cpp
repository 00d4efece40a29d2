#include "serve/catalog.h"

#include <algorithm>
#include <atomic>

#include "core/hash.h"
#include "page/html.h"
#include "serve/lone_evaluations.h"
#include "serve/routes.h"
#include "serve/stamp.h"
#include "store/runs/find_runs.h"

namespace olmo::serve {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// What was found is shown for so long before it is looked at again.
constexpr auto kFresh = std::chrono::seconds(3);
constexpr std::size_t kSummaryReaders = 4;
constexpr auto kReaderPause = std::chrono::milliseconds(10);
constexpr int kPausesToShow = 20;

bool is_plain(const std::string& id) {
  return !id.empty() && id.size() <= 64 && id[0] != '.' &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

/// What the keys of all runs of a database end in.
std::string key_end(const fs::path& database) {
  std::error_code ignored;
  return "~" +
         sha256(fs::absolute(database, ignored).lexically_normal().string()).hex().substr(0, 6);
}

std::string key_of(const fs::path& database, const std::string& run_id) {
  const std::string id = is_plain(run_id) ? run_id : sha256(run_id).hex().substr(0, 16);
  return id + key_end(database);
}

/// The path below the folder that was named, which is left out where it is the only one.
std::string shown_place(const std::vector<fs::path>& places, const fs::path& database) {
  for (const auto& place : places) {
    const auto below = database.lexically_relative(place);
    if (below.empty() || below.begin()->string() == ".." || below == ".") continue;
    return (places.size() == 1 ? below : place.filename() / below).string();
  }
  return database.string();
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

/// A database as it was when its stamp was taken.
struct Catalog::Known {
  struct Run {
    store::RunSummary summary;
    std::set<fs::path> folders = {};  ///< where its folder may be; of one that says that it runs
    monitor::Judgement now = {};

    [[nodiscard]] bool says_it_runs() const {
      return !summary.imported && summary.run.status == "running";
    }
    void judge() { now = monitor::judge(summary.run, summary.imported, folders); }
  };

  fs::path path;
  Stamp stamp;
  std::vector<Run> runs;
  LoneEvaluations evaluations = {};
  std::string problem;  ///< why it cannot be read; empty: it can
};

store::RunDb RunEntry::open() const {
  return store::RunDb::open(database, store::OpenMode::kGlance);
}

const RunEntry* Listing::find(const std::string& key) const {
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const RunEntry& run) { return run.key == key; });
  return found == runs.end() ? nullptr : &*found;
}

const LoneEvaluation* Listing::find_evaluation(const std::string& key) const {
  const auto found = std::ranges::find(evaluations, key, &LoneEvaluation::key);
  return found == evaluations.end() ? nullptr : &*found;
}

std::string Listing::why_absent(const std::string& key) const {
  for (const auto& each : bad)
    if (key.ends_with(each.key_end))
      return "The database of this run, " + each.place + ", cannot be read now: " + each.sentence;
  return "There is no run " + page::clip(key, 80) +
         " in the folders that are served; it may have been moved or removed.";
}

Catalog::Catalog(std::vector<fs::path> places)
    : places_(std::move(places)), thread_([this] { look_on(); }) {}

Catalog::~Catalog() {
  {
    const std::lock_guard held(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<const Listing> Catalog::listing(std::chrono::milliseconds patience) {
  std::unique_lock held(mutex_);
  asked_ = Clock::now();
  const auto wanted = asked_ - interval_;
  changed_.notify_all();
  changed_.wait_for(held, patience, [&] { return looked_ > wanted || ending_; });
  return listing_;
}

std::shared_ptr<const Listing> Catalog::listing_with(const std::vector<std::string>& keys) {
  auto known = listing(std::chrono::milliseconds(0));
  const bool has_all = std::ranges::all_of(keys, [&](const auto& key) {
    return known->find(key) != nullptr || known->find_evaluation(key) != nullptr;
  });
  return has_all ? known : listing(std::chrono::milliseconds(3000));
}

RunEntry Catalog::run(const std::string& key) {
  const auto known = listing_with({key});
  if (const RunEntry* found = known->find(key)) return *found;
  throw NotFound(known->why_absent(key));
}

void Catalog::look_on() {
  std::unique_lock held(mutex_);
  while (!ending_) {
    changed_.wait(held, [&] {
      return ending_ || asked_ > looked_ + interval_ || looked_ == Clock::time_point{};
    });
    if (ending_) return;
    const auto begun = Clock::now();
    held.unlock();
    look();
    held.lock();
    looked_ = begun;
    // Folders that take long to look through are looked at less often.
    interval_ = std::max<Clock::duration>(kFresh, 5 * (Clock::now() - begun));
    changed_.notify_all();
  }
}

/// What the threads of a look share.
struct Catalog::Look {
  store::FoundDatabases places;
  std::mutex mutex = {};                                 ///< of `known`
  std::vector<std::shared_ptr<const Known>> known = {};  ///< null: not yet read
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> readers = 0;  ///< that have not ended
};

void Catalog::read_some(Look& look) {
  for (std::size_t i; (i = look.next++) < look.known.size();) {
    {
      const std::lock_guard held(mutex_);
      if (ending_) break;
    }
    const auto& path = look.places.databases[i];
    const auto before = known_.find(path);
    auto known = read(path, before == known_.end() ? nullptr : before->second);
    const std::lock_guard held(look.mutex);
    look.known[i] = std::move(known);
  }
  --look.readers;
}

void Catalog::look() {
  Look look{.places = store::find_databases(places_)};
  look.known.resize(look.places.databases.size());
  // Reading waits for the disk most of the time. Where little has changed, one thread is enough.
  const std::size_t count = known_.empty() ? kSummaryReaders : 1;
  look.readers = count;
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < count; ++i) readers.emplace_back([this, &look] { read_some(look); });
  // The first look at many databases on a slow disk is shown as it goes. During later ones what was
  // known is whole.
  for (int waited = 1; look.readers > 0; ++waited) {
    std::this_thread::sleep_for(kReaderPause);
    if (known_.empty() && waited % kPausesToShow == 0) publish(look);
  }
  for (auto& reader : readers) reader.join();
  publish(look);
  known_.clear();
  for (std::size_t i = 0; i < look.known.size(); ++i)
    if (look.known[i]) known_[look.places.databases[i]] = look.known[i];
}

std::shared_ptr<const Catalog::Known> Catalog::read(
    const fs::path& path, const std::shared_ptr<const Known>& before) const {
  // Taken first: what is written while it is read makes it be read again.
  const Stamp stamp = stamp_of(path);
  // What kept it from being read may pass without a trace in the file, such as a right to read it.
  if (before && before->stamp == stamp && before->problem.empty()) return judged_again(before);
  auto known = std::make_shared<Known>();
  known->path = path;
  known->stamp = stamp;
  try {
    store::RecordDatabase records(path, store::OpenMode::kGlance);
    for (auto& summary : store::run_summaries(records)) {
      Known::Run run{.summary = std::move(summary)};
      if (run.says_it_runs())
        run.folders = monitor::possible_folders(
            path, store::read_checkpoints(records, run.summary.run.run_id));
      run.judge();
      known->runs.push_back(std::move(run));
    }
    known->evaluations = read_lone_evaluations(records);
  } catch (const std::exception& error) {
    known->problem = error.what();
  }
  return known;
}

/// A process that is killed changes no database: runs that say that they run are looked at again.
std::shared_ptr<const Catalog::Known> Catalog::judged_again(
    const std::shared_ptr<const Known>& before) {
  if (std::ranges::none_of(before->runs, &Known::Run::says_it_runs)) return before;
  auto known = std::make_shared<Known>(*before);
  for (auto& run : known->runs) run.judge();
  return known;
}

void Catalog::publish(Look& look) {
  auto listing = std::make_shared<Listing>();
  listing->warnings = look.places.warnings;
  listing->databases = look.known.size();
  const double now = now_seconds();
  std::unique_lock reading(look.mutex);
  for (const auto& known : look.known) {
    if (!known) continue;
    ++listing->read;
    const std::string place = shown_place(places_, known->path);
    if (!known->problem.empty()) {
      listing->bad.push_back({key_end(known->path), place, known->problem});
      continue;
    }
    for (const auto& run : known->runs)
      listing->runs.push_back(
          {.key = key_of(known->path, run.summary.run.run_id),
           .database = known->path,
           .place = place,
           .summary = run.summary,
           .now = run.now,
           .unwritten_seconds = std::max(0.0, now - known->stamp.written),
           .record = records_.of(known->path, run.summary.run.run_id, known->stamp)});
    for (LoneEvaluation one : known->evaluations.newest) {
      one.key = key_of(known->path, one.entry.evaluation_id);
      one.database = known->path;
      one.place = place;
      listing->evaluations.push_back(std::move(one));
    }
    listing->older_evaluations += known->evaluations.others;
  }
  reading.unlock();
  std::stable_sort(listing->runs.begin(), listing->runs.end(), [](const auto& a, const auto& b) {
    return a.summary.run.created_utc > b.summary.run.created_utc;
  });
  std::stable_sort(
      listing->evaluations.begin(), listing->evaluations.end(),
      [](const auto& a, const auto& b) { return a.entry.created_utc > b.entry.created_utc; });
  const std::lock_guard held(mutex_);
  listing_ = std::move(listing);
}

}  // namespace olmo::serve
