#include "dist/world.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include <sys/prctl.h>

#include "core/compute/machine.h"
#include "core/error.h"
#include "core/process/open_files.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "dist/address.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "dist/gloo_ranks.h"
#include "dist/meeting.h"
#include "dist/nproc.h"
#include "dist/reach.h"

namespace olmo::dist {
namespace {

using Kind = Rendezvous::Kind;
using std::chrono::milliseconds;

constexpr char kOver[] = "over";                          ///< for rank 0
constexpr char kSize[] = "size", kProgram[] = "program";  ///< as the first rank that came knows it

std::unique_ptr<Store> open_store(const Launch& launch, const RankLimits& limits) {
  const Rendezvous& at = launch.rendezvous;
  if (at.kind == Kind::kFolder) return file_store(at.folder);
  TcpPlace place{at.host, at.port};
  const StoreLimits store{.connect = limits.join, .answer = limits.watch.dead};
  if (at.kind == Kind::kTcp && launch.rank == 0) {
    make_room_for_files(launch.size, "the meeting of " + std::to_string(launch.size) + " ranks");
    return host_tcp_store(place, store);
  }
  try {
    return join_tcp_store(place, store);
  } catch (const Error& error) {
    if (at.kind == Kind::kAgent || error.kind() == ErrorKind::kUsage) throw;
    throw Error(
        ErrorKind::kStopped,
        "rank " + std::to_string(launch.rank) +
            ": rank 0, which hosts the place where the ranks meet, has not come: " + error.what());
  }
}

/// By their machines, in the order of the ranks.
Placement placement_by_machine(const std::vector<std::string>& machines, int rank) {
  std::map<std::string, int> nodes;
  std::vector<int> sizes;
  Placement place{.local_rank = 0, .local_size = 0};
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const auto [found, is_new] = nodes.try_emplace(machines[i], static_cast<int>(nodes.size()));
    if (is_new) sizes.push_back(0);
    auto& size = sizes[static_cast<std::size_t>(found->second)];
    if (static_cast<int>(i) == rank) {
      place.local_rank = size;
      place.node = found->second;
    }
    size += 1;
  }
  place.nodes = static_cast<int>(nodes.size());
  place.local_size = sizes[static_cast<std::size_t>(place.node)];
  return place;
}

/// An error of this rank, as the others hear it.
Failure told_to_all(Watch& watch, const Launch& launch, ErrorKind kind, const std::string& what) {
  Failure failure = watch.post(kind, what);
  // Rank 0 writes as one process does.
  if (failure.rank == launch.rank && launch.rank == 0) failure.message = what;
  return failure;
}

[[noreturn]] void end_stuck_process(const Failure& failure) {
  log_line("error: " + failure.message + "; this process has not ended since, and is ended now");
  std::_Exit(static_cast<int>(failure.kind));
}

}  // namespace

World::World() : hosts_{own_identity().host}, ranks_(alone()) {}

World::World(const Launch& launch, const RankLimits& limits)
    : launch_(launch), limits_(limits), placement_(launch.placement.value_or(Placement())) {
  if (launch.how == kNproc) ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody else would end us
  const auto store = open_store(launch, limits);
  store_ = with_prefix(*store, launch.rendezvous.attempt);
  enlist(*store_, launch.rank, own_identity());
  if (!limits_.watch.end_process) limits_.watch.end_process = end_stuck_process;
  watch_ = std::make_unique<Watch>(
      *store_, launch.rank, launch.size, limits_.watch,
      launch.rendezvous.kind == Kind::kTcp ? std::optional(0) : std::nullopt);
}

World::~World() = default;

void World::at_step(std::int64_t step) {
  if (!watch_) return;
  watch_->at_step(step);
  watch_->check();
}

/// Ranks that count themselves differently would wait for some that nobody started.
void World::require_one_size() {
  const std::string mine = std::to_string(launch_.size), stands = store_->set_first(kSize, mine);
  if (stands == mine) return;
  throw Error(ErrorKind::kUsage, "this rank was started as one of " + mine +
                                     " ranks, and another rank as one of " + safe_line(stands) +
                                     ": expected the same number for all");
}

/// Those of another revision may speak otherwise, so that all would wait for each other before
/// they could compare anything.
void World::require_one_program() {
  const std::string mine = version_line(), who = name_of_rank(launch_.rank, own_identity());
  std::istringstream first(store_->set_first(kProgram, mine + "\n" + who));
  std::string theirs, whose;
  std::getline(first, theirs) && std::getline(first, whose);
  if (theirs == mine) return;
  throw Error(ErrorKind::kUsage, "this rank was built as " + mine + ", and " + safe_line(whose) +
                                     " as " + safe_line(theirs) +
                                     ": expected one program for all ranks");
}

void World::wait_for_all() {
  // The others wait a little longer, so that rank 0 says who is missing.
  const milliseconds limit =
      limits_.join + (launch_.rank == 0 ? milliseconds(0) : limits_.watch.dead);
  const auto missing =
      meet(*store_, launch_.rank, launch_.size, limit, [this] { watch_->check(); });
  if (missing.empty()) return;
  throw RankFailure(watch_->post({.rank = missing.front(),
                                  .kind = ErrorKind::kStopped,
                                  .message = rank_list(missing) + " of " +
                                             std::to_string(launch_.size) + " did not come to " +
                                             store_->name() + " within " + seconds_text(limit),
                                  .reporter = launch_.rank}));
}

void World::exchange_places() {
  const auto self = own_identity();
  const std::string processors = usable_cores().processors;
  const auto all =
      all_gather_text(*ranks_, (launch_.placement ? "known\n" : "unknown\n") + self.machine() +
                                   "\n" + processors + "\n" + self.host);
  bool all_known = true;
  std::vector<std::string> machines;
  std::map<std::pair<std::string, std::string>, int> on_processors;
  for (const auto& text : all) {
    std::istringstream lines(text);
    std::string known, machine, their_processors, host;
    std::getline(lines, known) && std::getline(lines, machine) &&
        std::getline(lines, their_processors) && std::getline(lines, host);
    all_known = all_known && known == "known";
    machines.push_back(machine);
    hosts_.push_back(host);
    on_processors[{machine, their_processors}] += 1;
  }
  if (!all_known) placement_ = placement_by_machine(machines, launch_.rank);
  // default_threads() knows of --nproc's ranks before they meet.
  if (launch_.how != kNproc && !launch_.own_processors)
    sharers_ = on_processors[{self.machine(), processors}];
}

std::string World::own_address() {
  const bool one_machine = launch_.placement && launch_.placement->nodes == 1;
  return find_own_address(*store_, {.rank = launch_.rank,
                                    .size = launch_.size,
                                    .meeting_host = launch_.rendezvous.host,
                                    .one_machine = one_machine,
                                    .limit = limits_.join,
                                    .check = [this] { watch_->check(); }});
}

void World::connect() {
  require_one_size();
  require_one_program();
  wait_for_all();
  GlooOptions options;
  // The watch finds who hangs before the transport gives up.
  options.limit = limits_.watch.hung + 2 * limits_.watch.dead;
  options.address = own_address();
  require_reach(*store_, {.rank = launch_.rank,
                          .size = launch_.size,
                          .address = options.address,
                          .limit = limits_.join,
                          .check = [this] { watch_->check(); }});
  options.check = [watch = watch_.get()](const std::string& trouble) {
    if (trouble.empty()) return watch->check();
    watch->explain(trouble);
  };
  options.follow = [watch = watch_.get()](const std::string& name, auto position) {
    watch->follow(name, std::move(position));
  };
  ranks_ = join_gloo(*store_, kWorld, launch_.rank, launch_.size, options);
  exchange_places();
}

void World::leave() {
  watch_->leave();
  ranks_->barrier();
}

/// A launcher may kill all ranks once one has ended with an error. Rank 0, which closes the record,
/// goes first.
void World::await_rank_0(const Failure& failure) {
  constexpr milliseconds kLongest = std::chrono::seconds(10);
  const auto longest = std::min(limits_.watch.dead, kLongest);
  try {
    if (launch_.rank == 0) {
      store_->set(kOver, "1");
      // The others read it, and the failure, in the store that this process hosts.
      const auto end = std::chrono::steady_clock::now() + longest;
      while (launch_.rendezvous.kind == Kind::kTcp && std::chrono::steady_clock::now() < end &&
             !all_know(*store_, launch_.size, failure))
        std::this_thread::sleep_for(milliseconds(20));
    } else if (failure.rank != 0) {
      store_->wait(kOver, longest);
    }
  } catch (const Error&) {  // then there is nothing to wait for
  }
}

void World::end_after(const Failure& failure) {
  // Where rank 0 is gone with the store, nobody can agree on who says so: one of each machine does.
  const bool knows_place = launch_.placement || !hosts_.empty();
  const int first_left = placement_.node == 0 ? 1 : 0;
  const bool in_its_place =
      failure.reporter == kNobody && (!knows_place || placement_.local_rank == first_left);
  const bool tells = launch_.rank == 0 || launch_.rank == failure.rank ||
                     launch_.rank == failure.reporter || in_its_place;
  if (tells) log_line("error: " + failure.message);
  await_rank_0(failure);
  std::cout.flush();
  std::_Exit(static_cast<int>(failure.kind));
}

int run_world(const Launch& launch, const RankLimits& limits,
              const std::function<int(World&)>& work) {
  if (launch.size == 1) {
    World world;
    return work(world);
  }
  World world(launch, limits);
  Watch& watch = *world.watch_;
  try {
    world.connect();
    try {
      const int code = work(world);
      world.leave();
      return code;
    } catch (const AgreedError& error) {
      if (launch.rank == 0) log_line(std::string("error: ") + error.what());
      world.leave();
      return static_cast<int>(error.kind());
    }
  } catch (const RankFailure& error) {
    world.end_after(error.failure());
  } catch (const Error& error) {
    world.end_after(told_to_all(watch, launch, error.kind(), error.what()));
  } catch (const std::exception& error) {
    world.end_after(told_to_all(watch, launch, ErrorKind::kFailure, error.what()));
  }
}

}  // namespace olmo::dist
