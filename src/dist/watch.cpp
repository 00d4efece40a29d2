#include "dist/watch.h"

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/text.h"

namespace olmo::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kFailureKey[] = "failure";
constexpr char kLeft[] = "left";

std::string rank_key(int rank) { return "rank/" + std::to_string(rank); }
std::string beat_key(int rank) { return "beat/" + std::to_string(rank); }

std::string seconds_text(std::chrono::milliseconds time) {
  return formatted("%g s", static_cast<double>(time.count()) / 1000);
}

std::string to_text(const Failure& failure) {
  return json_text(Json{{"rank", failure.rank},
                        {"kind", static_cast<int>(failure.kind)},
                        {"message", failure.message},
                        {"reporter", failure.reporter}});
}

Failure parse_failure(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {.message = "a rank has failed, and its message is lost"};
  return {.rank = json.value("rank", 0),
          .kind = static_cast<ErrorKind>(json.value("kind", static_cast<int>(ErrorKind::kStopped))),
          .message = json.value("message", ""),
          .reporter = json.value("reporter", 0)};
}

std::string to_text(const ProcessIdentity& who) {
  return json_text(Json{{"host", who.host},
                        {"boot_id", who.boot_id},
                        {"pid", who.pid},
                        {"pid_start", who.pid_start},
                        {"pid_namespace", who.pid_namespace}});
}

ProcessIdentity parse_identity(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  return {.host = json.value("host", ""),
          .boot_id = json.value("boot_id", ""),
          .pid = json.value("pid", std::int64_t{0}),
          .pid_start = json.value("pid_start", std::uint64_t{0}),
          .pid_namespace = json.value("pid_namespace", "")};
}

}  // namespace

void enlist(Store& store, int rank, const ProcessIdentity& who) {
  const std::string mine = to_text(who);
  const std::string stands = store.set_first(rank_key(rank), mine);
  if (stands == mine) return;
  const auto other = parse_identity(stands);
  throw Error(ErrorKind::kUsage,
              "rank " + std::to_string(rank) + ": process " + std::to_string(other.pid) + " on " +
                  other.host + " has come to " + store.name() +
                  " as the same rank: expected a number of its own for each process, and another "
                  "place to meet for each attempt");
}

std::optional<ProcessIdentity> enlisted(Store& store, int rank) {
  const auto text = store.get(rank_key(rank));
  if (!text) return std::nullopt;
  return parse_identity(*text);
}

Failure post_failure(Store& store, const Failure& failure) {
  return parse_failure(store.set_first(kFailureKey, to_text(failure)));
}

std::string name_of_rank(int rank, const std::optional<ProcessIdentity>& who) {
  std::string name = "rank " + std::to_string(rank);
  if (who) name += " (process " + std::to_string(who->pid) + " on " + who->host + ")";
  return name;
}

std::optional<Watch::Place> Watch::parse_place(const std::string& beat) {
  std::istringstream in(beat);
  std::int64_t beats = 0, kind = 0;
  Place place;
  in >> beats >> place.position.number >> kind >> place.position.bytes >> place.step;
  if (!in) return std::nullopt;
  place.position.kind = static_cast<Collective>(kind);
  return place;
}

Watch::Watch(const Store& store, int rank, int size, WatchLimits limits, std::optional<int> host)
    : rank_(rank),
      size_(size),
      limits_(std::move(limits)),
      host_(host),
      self_(own_identity()),
      store_(store.again()) {
  const auto now = Clock::now();
  looked_ = moved_ = now;
  const auto add = [&](int other) {
    if (other == rank_) return;
    for (const auto& known : neighbours_)
      if (known.rank == other) return;
    neighbours_.push_back({.rank = other, .changed = now, .moved = now});
  };
  add((rank + size - 1) % size);
  add((rank + 1) % size);
  thread_ = std::thread([this] { loop(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::follow(std::function<Position()> position) {
  const std::lock_guard lock(mutex_);
  position_ = std::move(position);
}

void Watch::at_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

void Watch::check() const {
  if (const auto known = failure()) throw RankFailure(*known);
}

std::optional<Failure> Watch::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Watch::explain(const std::string& what) {
  {
    std::unique_lock lock(mutex_);
    // A neighbour that is dead elsewhere shows only when it has been silent for long enough.
    changed_.wait_for(lock, limits_.dead + 3 * limits_.beat, [&] { return failure_.has_value(); });
  }
  check();
  throw RankFailure(post(ErrorKind::kStopped, "the exchange with other ranks broke off (" + what +
                                                  "), and no rank is known to have failed"));
}

Failure Watch::post(ErrorKind kind, const std::string& message) {
  return post({.rank = rank_,
               .kind = kind,
               .message = name_of_rank(rank_, self_) + ": " + message,
               .reporter = rank_});
}

Failure Watch::post(const Failure& failure) {
  std::unique_lock lock(mutex_);
  if (failure_) return *failure_;
  to_post_ = failure;
  changed_.notify_all();
  // The thread posts it, which a store that does not answer may hold up.
  changed_.wait_for(lock, limits_.dead, [&] { return failure_.has_value(); });
  return failure_.value_or(failure);
}

std::chrono::milliseconds Watch::pause() const {
  constexpr int kRanksAtOnce = 256;
  return limits_.beat * std::max(1, size_ / kRanksAtOnce);
}

void Watch::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
}

void Watch::loop() {
  for (std::unique_lock lock(mutex_); !ended_;) {
    lock.unlock();
    try {
      if (store_) look(*store_);
      trouble_.reset();
    } catch (const std::exception& error) {
      lose_store(error.what());
    }
    end_if_stuck();
    lock.lock();
    changed_.wait_for(lock, pause(), [&] { return ended_ || (to_post_ && store_); });
  }
  try {
    if (store_ && !failure()) store_->set(beat_key(rank_), kLeft);
  } catch (const std::exception&) {  // its host has left, too
  }
}

void Watch::look(Store& store) {
  const auto now = Clock::now();
  // Who was stopped or asleep itself has heard nobody, and must listen anew.
  const bool was_away = now - looked_ > std::max(3 * pause(), limits_.dead / 2);
  looked_ = now;
  if (was_away)
    for (auto& neighbour : neighbours_) neighbour.changed = neighbour.moved = now;
  write_beat(store);
  std::optional<Failure> to_post;
  {
    const std::lock_guard lock(mutex_);
    to_post = std::exchange(to_post_, std::nullopt);
  }
  if (to_post) post_failure(store, *to_post);
  read_failure(store);
  if (failure()) return;
  std::vector<std::string> keys;
  for (const auto& neighbour : neighbours_) keys.push_back(beat_key(neighbour.rank));
  const auto beats = store.get_all(keys);
  for (std::size_t i = 0; i < neighbours_.size() && !failure(); ++i)
    judge(store, neighbours_[i], beats[i]);
}

void Watch::write_beat(Store& store) {
  const std::int64_t before = place_.position.number;
  {
    const std::lock_guard lock(mutex_);
    if (position_) place_.position = position_();
    place_.step = step_;
  }
  const auto& [number, kind, bytes] = place_.position;
  if (number != before) moved_ = Clock::now();
  std::ostringstream beat;
  beat << ++beats_ << ' ' << number << ' ' << static_cast<int>(kind) << ' ' << bytes << ' '
       << place_.step;
  store.set(beat_key(rank_), beat.str());
}

void Watch::read_failure(Store& store) {
  if (failure()) return;
  if (const auto text = store.get(kFailureKey)) learn(parse_failure(*text));
}

void Watch::judge(Store& store, Neighbour& neighbour, const std::optional<std::string>& beat) {
  if (!beat || *beat == kLeft) return;  // has not come yet, or has left in order
  if (!neighbour.who) neighbour.who = enlisted(store, neighbour.rank);
  const auto now = Clock::now();
  if (*beat != neighbour.beat) {
    neighbour.beat = *beat;
    neighbour.changed = now;
  }
  const bool gone =
      neighbour.who && sees(self_, *neighbour.who) && life_of(*neighbour.who) == Life::kEnded;
  if (gone || now - neighbour.changed > limits_.dead) return judge_silence(store, neighbour);
  if (const auto place = parse_place(*beat)) judge_place(store, neighbour, *place);
}

void Watch::judge_silence(Store& store, const Neighbour& neighbour) {
  // Its last words may have come between our reading and its end.
  read_failure(store);
  if (failure() || store.get(beat_key(neighbour.rank)) != neighbour.beat) return;
  std::string what = " has given no sign of life for " + seconds_text(limits_.dead);
  if (neighbour.who && sees(self_, *neighbour.who)) {
    const Life life = life_of(*neighbour.who);
    if (life == Life::kEnded) what = " has ended without a word: it crashed or was killed";
    if (life == Life::kStopped) what += ": it is stopped, as by SIGSTOP";
    if (life == Life::kRuns) what += ", though its process exists";
  } else {
    what += ": it was killed or stopped, or its machine or network is down";
  }
  post_failure(store, {.rank = neighbour.rank,
                       .message = name_of_rank(neighbour.rank, neighbour.who) + what,
                       .reporter = rank_});
}

void Watch::judge_place(Store& store, Neighbour& neighbour, const Place& theirs) {
  const auto now = Clock::now();
  if (theirs.position.number != neighbour.number) {
    neighbour.number = theirs.position.number;
    neighbour.moved = now;
  }
  const auto text = [](const Place& place) {
    return to_string(place.position) +
           (place.step < 0 ? "" : " in step " + std::to_string(place.step));
  };
  const std::int64_t number = place_.position.number;
  const std::string name = name_of_rank(neighbour.rank, neighbour.who);
  const std::string here = "rank " + std::to_string(rank_);
  if (number > 0 && theirs.position.number == number &&
      theirs.position.kind != place_.position.kind) {
    post_failure(store, {.rank = neighbour.rank,
                         .kind = ErrorKind::kFailure,
                         .message = name + " is out of step with " + here + ": it is at " +
                                    text(theirs) + ", " + here + " at " + text(place_),
                         .reporter = rank_});
  } else if (theirs.position.number < number && now - neighbour.moved > limits_.hung &&
             now - moved_ > limits_.hung) {
    post_failure(store, {.rank = neighbour.rank,
                         .message = name + " hangs: for " + seconds_text(limits_.hung) + " " +
                                    here + " has waited for it at " + text(place_) +
                                    ", and it is at " + text(theirs),
                         .reporter = rank_});
  }
}

Failure Watch::post_failure(Store& store, const Failure& failure) {
  const auto stands = dist::post_failure(store, failure);
  learn(stands);
  return stands;
}

void Watch::lose_store(const std::string& why) {
  // A folder on a network's disk may be away for a while; a rank that hosts a store does not
  // return.
  const auto now = Clock::now();
  if (!trouble_) trouble_ = now;
  if (!host_ && now - *trouble_ < limits_.dead) return;
  store_.reset();
  {
    const std::lock_guard lock(mutex_);
    if (leaving_ || ended_) return;  // its host has left before us
  }
  if (failure()) return;
  if (!host_ || *host_ == rank_)
    return learn(
        {.rank = rank_,
         .message = name_of_rank(rank_, self_) + ": the ranks cannot hear each other: " + why,
         .reporter = rank_});
  learn({.rank = *host_,
         .message =
             "rank " + std::to_string(*host_) +
             ", which hosted the place where the ranks meet, is gone or does not answer: " + why,
         .reporter = kNobody});
}

void Watch::learn(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    learned_ = Clock::now();
  }
  changed_.notify_all();
}

void Watch::end_if_stuck() {
  std::optional<Failure> overdue;
  {
    const std::lock_guard lock(mutex_);
    if (failure_ && !ended_ && Clock::now() - learned_ > 2 * limits_.dead) overdue = failure_;
  }
  if (overdue && limits_.end_process) limits_.end_process(*overdue);
}

}  // namespace olmo::dist
