#include "dist/watch.h"

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/text/text.h"

namespace olmo::dist {
namespace {

constexpr char kFailureKey[] = "failure";
// Beats that say where a rank stands: it is through, or it knows of the failure.
constexpr char kLeft[] = "left", kKnows[] = "knows";

std::string rank_key(int rank) { return "rank/" + std::to_string(rank); }
std::string beat_key(int rank) { return "beat/" + std::to_string(rank); }

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
  Json json;
  visit_identity(who, [&](const char* name, const auto& value) { json[name] = value; });
  return json_text(json);
}

ProcessIdentity parse_identity(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  ProcessIdentity who;
  if (!json.is_object()) return who;
  visit_identity(who, [&](const char* name, auto& value) { value = json.value(name, value); });
  return who;
}

}  // namespace

void enlist(Store& store, int rank, const ProcessIdentity& who) {
  const std::string mine = to_text(who);
  const std::string stands = store.set_first(rank_key(rank), mine);
  if (stands == mine) return;
  const auto other = parse_identity(stands);
  const std::string before = "rank " + std::to_string(rank) + ": process " +
                             std::to_string(other.pid) + " on " + other.host + " has come to " +
                             store.name() + " as the same rank";
  if (!sees(who, other) || life_of(other) != Life::kEnded) {
    throw Error(ErrorKind::kUsage, before +
                                       ": expected a number of its own for each process, and "
                                       "another place to meet for each attempt");
  }
  // The other ranks of this attempt would call that process dead.
  throw Error(
      ErrorKind::kUsage,
      post_failure(store, {.rank = rank,
                           .kind = ErrorKind::kUsage,
                           .message = before + " and has ended since, in an earlier attempt: "
                                               "expected another place to meet for each attempt",
                           .reporter = rank})
          .message);
}

std::optional<ProcessIdentity> enlisted(Store& store, int rank) {
  const auto text = store.get(rank_key(rank));
  if (!text) return std::nullopt;
  return parse_identity(*text);
}

Failure post_failure(Store& store, const Failure& failure) {
  return parse_failure(store.set_first(kFailureKey, to_text(failure)));
}

bool all_know(Store& store, int size, const Failure& failure) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank)
    if (rank != failure.rank) keys.push_back(beat_key(rank));
  const auto beats = store.get_all(keys);
  return std::ranges::all_of(
      beats, [](const auto& beat) { return !beat || *beat == kLeft || *beat == kKnows; });
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
  in >> beats >> place.step;
  if (!in) return std::nullopt;
  for (std::string name; in >> name;) {
    auto& [number, of_kind, bytes] = place.in[name].position;
    in >> number >> kind >> bytes;
    if (!in) return std::nullopt;
    of_kind = static_cast<Collective>(kind);
  }
  return place;
}

void Watch::Place::update(const Place& now, Time time) {
  step = now.step;
  std::erase_if(in, [&](const auto& known) { return !now.in.contains(known.first); });
  for (const auto& [name, standing] : now.in) {
    const auto [known, is_new] = in.try_emplace(name);
    if (is_new || known->second.position.number != standing.position.number)
      known->second = {standing.position, time};
  }
}

Watch::Watch(const Store& store, int rank, int size, WatchLimits limits, std::optional<int> host)
    : rank_(rank),
      size_(size),
      limits_(std::move(limits)),
      host_(host),
      self_(own_identity()),
      store_(store.again()) {
  const auto now = limits_.now();
  looked_ = now;
  const auto add = [&](int other) {
    if (other == rank_) return;
    for (const auto& known : neighbours_)
      if (known.rank == other) return;
    neighbours_.push_back({.rank = other, .changed = now});
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

void Watch::follow(const std::string& name, std::function<Position()> position) {
  const std::lock_guard lock(mutex_);
  if (position) {
    followed_[name] = std::move(position);
  } else {
    followed_.erase(name);
  }
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
  const auto now = limits_.now();
  // Who was stopped or asleep itself has heard nobody, and must listen anew. Silence is measured up
  // to here, so that whoever was stopped between this and its reading finds nobody silent.
  const bool was_away = now - looked_ > std::max(3 * pause(), limits_.dead / 2);
  looked_ = now;
  if (was_away) {
    for (auto& neighbour : neighbours_) {
      neighbour.changed = now;
      for (auto& [name, standing] : neighbour.place.in) standing.since = now;
    }
  }
  if (!failure()) write_beat(store);
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
  Place now;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, position] : followed_) now.in[name].position = position();
    now.step = step_;
  }
  place_.update(now, limits_.now());
  std::ostringstream beat;
  beat << ++beats_ << ' ' << place_.step;
  for (const auto& [name, standing] : place_.in) {
    const auto& [number, kind, bytes] = standing.position;
    beat << ' ' << name << ' ' << number << ' ' << static_cast<int>(kind) << ' ' << bytes;
  }
  store.set(beat_key(rank_), beat.str());
}

void Watch::read_failure(Store& store) {
  if (failure()) return;
  if (const auto text = store.get(kFailureKey)) learn_from(store, parse_failure(*text));
}

void Watch::judge(Store& store, Neighbour& neighbour, const std::optional<std::string>& beat) {
  if (!beat || *beat == kLeft || *beat == kKnows) return;  // not come yet, or left in order
  if (!neighbour.who) neighbour.who = enlisted(store, neighbour.rank);
  if (*beat != neighbour.beat) {
    neighbour.beat = *beat;
    neighbour.changed = limits_.now();
  }
  const bool gone =
      neighbour.who && sees(self_, *neighbour.who) && life_of(*neighbour.who) == Life::kEnded;
  if (gone || looked_ - neighbour.changed > limits_.dead) return judge_silence(store, neighbour);
  if (const auto place = parse_place(*beat)) {
    neighbour.place.update(*place, limits_.now());
    judge_place(store, neighbour);
  }
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

void Watch::judge_place(Store& store, const Neighbour& neighbour) {
  for (const auto& [name, theirs] : neighbour.place.in) {
    const auto mine = place_.in.find(name);
    if (mine == place_.in.end()) continue;  // a group of which only one of us is
    judge_standing(store, neighbour, name, theirs, mine->second);
    if (failure()) return;
  }
}

void Watch::judge_standing(Store& store, const Neighbour& neighbour, const std::string& name,
                           const Standing& theirs, const Standing& mine) {
  const auto text = [&](const Standing& standing, std::int64_t step) {
    return to_string(standing.position) + (name == kWorld ? "" : " in `" + name + "`") +
           (step < 0 ? "" : " in step " + std::to_string(step));
  };
  const std::int64_t number = mine.position.number;
  const std::string who = name_of_rank(neighbour.rank, neighbour.who);
  const std::string here = "rank " + std::to_string(rank_);
  const auto there = [&] { return text(theirs, neighbour.place.step); };
  if (number > 0 && theirs.position.number == number &&
      theirs.position.kind != mine.position.kind) {
    post_failure(store, {.rank = neighbour.rank,
                         .kind = ErrorKind::kFailure,
                         .message = who + " is out of step with " + here + ": it is at " + there() +
                                    ", " + here + " at " + text(mine, place_.step),
                         .reporter = rank_});
  } else if (theirs.position.number < number && looked_ - theirs.since > limits_.hung &&
             looked_ - mine.since > limits_.hung) {
    post_failure(store, {.rank = neighbour.rank,
                         .message = who + " hangs: for " + seconds_text(limits_.hung) + " " + here +
                                    " has waited for it at " + text(mine, place_.step) +
                                    ", and it is at " + there(),
                         .reporter = rank_});
  }
}

Failure Watch::post_failure(Store& store, const Failure& failure) {
  auto stands = dist::post_failure(store, failure);
  learn_from(store, stands);
  return stands;
}

/// Who hosts the store waits for this beat. It comes first: once the failure is known the process
/// may end at any moment.
void Watch::learn_from(Store& store, const Failure& failure) {
  try {
    store.set(beat_key(rank_), kKnows);
  } catch (const std::exception&) {  // its host is gone, and waits no more
  }
  learn(failure);
}

void Watch::lose_store(const std::string& why) {
  // A folder on a network's disk may be away for a while; a rank that hosts a store does not
  // return.
  const auto now = limits_.now();
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
    learned_ = limits_.now();
  }
  changed_.notify_all();
}

void Watch::end_if_stuck() {
  std::optional<Failure> overdue;
  {
    const std::lock_guard lock(mutex_);
    if (failure_ && !ended_ && limits_.now() - learned_ > 2 * limits_.dead) overdue = failure_;
  }
  if (overdue && limits_.end_process) limits_.end_process(*overdue);
}

}  // namespace olmo::dist
