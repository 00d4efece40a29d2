#include "dist/agreement.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/hash.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "dist/exchange.h"

namespace olmo::dist {
namespace {

/// Beyond these, differences are counted.
constexpr std::size_t kShown = 5;
/// Columns of one value.
constexpr std::size_t kLongest = 120;

struct Account {
  std::string host;
  std::vector<Fact> facts;
};

std::string to_text(const Account& account) {
  Json json = {{"host", account.host}, {"facts", Json::array()}};
  for (const auto& fact : account.facts)
    json["facts"].push_back(Json::array({fact.name, fact.value, fact.place}));
  return json_text(json);
}

Account parse_account(const std::string& text) {
  const Json json = Json::parse(text);
  Account account{.host = json.at("host").get<std::string>(), .facts = {}};
  for (const auto& fact : json.at("facts"))
    account.facts.push_back({fact.at(0).get<std::string>(), fact.at(1).get<std::string>(),
                             fact.at(2).get<std::string>()});
  return account;
}

/// Equal to another if it says the same, wherever that comes from.
struct Value {
  std::string text, place;
  bool operator==(const Value& other) const { return text == other.text; }
};

/// What a fact says, by what says it: the keys of an object, or the fact's own name.
using Values = std::map<std::string, Value>;

void add_values(Values& values, const Fact& fact) {
  const Json json = Json::parse(fact.value, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty()) {
    values[fact.name] = {fact.value, fact.place};
    return;
  }
  const Json flat = json.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.substr(1);  // "/model/d_model"
    std::ranges::replace(key, '/', '.');
    values[fact.name + ": " + key] = {value.is_string() ? value.get<std::string>() : value.dump(),
                                      fact.place};
  }
}

Values values_of(const Account& account) {
  Values values;
  for (const auto& fact : account.facts) add_values(values, fact);
  return values;
}

std::string shown(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) return "missing";
  const auto& [value, place] = found->second;
  return shortened(safe_line(value), kLongest) +
         (place.empty() ? "" : " (" + shortened(safe_line(place), kLongest) + ")");
}

/// "config: seed is 7 there and 6 on rank 0; …"
std::string differences(const Values& theirs, const Values& first) {
  std::set<std::string> names;
  for (const auto* values : {&theirs, &first})
    for (const auto& [name, value] : *values)
      if (!theirs.contains(name) || !first.contains(name) || theirs.at(name) != first.at(name))
        names.insert(name);
  std::string text;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (++count > kShown) continue;
    text += (text.empty() ? "" : "; ") + safe_line(name) + " is " + shown(theirs, name) +
            " there and " + shown(first, name) + " on rank 0";
  }
  if (count > kShown) text += "; and " + std::to_string(count - kShown) + " more";
  return text;
}

/// One sentence for ranks that differ in the same way: "rank 3 (on nid0012): …".
std::string describe(const std::vector<Account>& accounts) {
  const Values first = values_of(accounts.front());
  std::map<std::string, std::vector<int>> alike;  // by what differs
  for (std::size_t rank = 1; rank < accounts.size(); ++rank) {
    const auto what = differences(values_of(accounts[rank]), first);
    if (!what.empty()) alike[what].push_back(static_cast<int>(rank));
  }
  std::string text;
  for (const auto& [what, ranks] : alike) {
    std::set<std::string> hosts;
    for (const int rank : ranks) hosts.insert(accounts[static_cast<std::size_t>(rank)].host);
    const std::string where =
        hosts.size() == 1 ? *hosts.begin() : std::to_string(hosts.size()) + " machines";
    text += "\n  " + rank_list(ranks) + " (on " + safe_line(where) + "): " + what;
  }
  return text;
}

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const bool is_range = end - i > 2;
    if (!is_range) end = i + 1;
    parts.push_back(std::to_string(ranks[i]) +
                    (is_range ? " to " + std::to_string(ranks[end - 1]) : ""));
    i = end;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

void require_same(Communicator& ranks, std::span<const Fact> facts, const std::string& host) {
  if (ranks.size() == 1) return;
  Sha256 hash;
  for (const auto& fact : facts)
    hash.update(std::to_string(fact.name.size()) + " " + std::to_string(fact.value.size()) + "\n" +
                fact.name + fact.value);
  const auto digests = all_gather_text(ranks, hash.finish().hex());
  const auto differs = [&](const std::string& digest) { return digest != digests.front(); };
  if (std::ranges::none_of(digests, differs)) return;
  std::vector<Account> accounts;
  for (const auto& text : all_gather_text(ranks, to_text({host, {facts.begin(), facts.end()}})))
    accounts.push_back(parse_account(text));
  throw AgreedError(ErrorKind::kUsage,
                    "the ranks are not about to do the same:" + describe(accounts));
}

}  // namespace olmo::dist
