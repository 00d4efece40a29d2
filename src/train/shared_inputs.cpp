#include "train/shared_inputs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "core/process_identity.h"
#include "dist/exchange.h"
#include "dist/together.h"

namespace olmo::train {
namespace {

/// What ranks that see the very same files have in common, and the sizes of the files.
struct Sight {
  std::string key;
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> keys;  ///< of all ranks
};

Sight look_at(const std::vector<InputFile>& files) {
  Sight sight;
  Sha256 hash;
  hash.update(own_identity().machine());
  for (const InputFile& file : files) {
    struct stat status {};
    if (::stat(file.path.c_str(), &status) != 0)
      throw Error(ErrorKind::kInput,
                  file.path.string() + ": cannot be looked at: " + std::strerror(errno));
    for (const auto number :
         {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
          static_cast<std::int64_t>(status.st_size),
          static_cast<std::int64_t>(status.st_mtim.tv_sec),
          static_cast<std::int64_t>(status.st_mtim.tv_nsec)})
      hash.update_u64(static_cast<std::uint64_t>(number));
    sight.sizes.push_back(static_cast<std::uint64_t>(status.st_size));
  }
  sight.key = hash.finish().hex();
  return sight;
}

/// What a rank has hashed, as it travels: bytes and digest by number of the file.
std::string to_text(const std::vector<store::InputRecord>& records) {
  Json json = Json::object();
  for (std::size_t i = 0; i < records.size(); ++i)
    if (!records[i].sha256.empty())
      json[std::to_string(i)] = Json::array({records[i].bytes, records[i].sha256});
  return json_text(json);
}

/// Collective.
Sight look_together(dist::Communicator& ranks, const std::vector<InputFile>& files) {
  Sight sight;
  dist::together(ranks, [&] { sight = look_at(files); });
  sight.keys = dist::all_gather_text(ranks, sight.key);
  return sight;
}

/// describe_shared_inputs() of files that were looked at.
std::vector<store::InputRecord> describe_seen(dist::Communicator& ranks,
                                              const std::vector<InputFile>& files,
                                              const Sight& sight) {
  const auto readers = readers_of(ranks.rank(), sight.keys, sight.sizes);
  std::vector<store::InputRecord> records;
  dist::together(ranks, [&] {
    records = describe_inputs(files, [&](std::size_t i) { return readers[i] == ranks.rank(); });
  });
  const auto texts = dist::all_gather_text(ranks, to_text(records));
  std::vector<Json> of_rank;
  for (const auto& text : texts) of_rank.push_back(Json::parse(text));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Json& found = of_rank[static_cast<std::size_t>(readers[i])].at(std::to_string(i));
    records[i].bytes = found.at(0).get<std::int64_t>();
    records[i].sha256 = found.at(1).get<std::string>();
  }
  dist::together(ranks, [&] { require_sidecars_agree(records); });
  return records;
}

}  // namespace

std::vector<int> readers_of(int rank, const std::vector<std::string>& keys,
                            std::span<const std::uint64_t> sizes) {
  std::vector<int> alike;
  for (std::size_t other = 0; other < keys.size(); ++other)
    if (keys[other] == keys[static_cast<std::size_t>(rank)])
      alike.push_back(static_cast<int>(other));
  std::vector<std::uint64_t> given(alike.size());
  std::vector<int> readers(sizes.size());
  for (const std::size_t file :
       largest_first(sizes.size(), [&](std::size_t i) { return sizes[i]; })) {
    const auto least = std::ranges::min_element(given);
    *least += sizes[file] + 1;  // files without a byte are dealt, too
    readers[file] = alike[static_cast<std::size_t>(least - given.begin())];
  }
  return readers;
}

std::vector<dist::Fact> facts_of_inputs(const std::vector<store::InputRecord>& inputs) {
  std::vector<dist::Fact> facts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [kind, path, bytes, sha256] = inputs[i];
    facts.push_back({kind + " " + std::to_string(i), std::to_string(bytes) + " bytes, " + sha256,
                     std::filesystem::path(path).filename().string()});
  }
  return facts;
}

void require_same_files(dist::Communicator& ranks, const std::vector<InputFile>& files) {
  const Sight sight = look_together(ranks, files);
  if (std::ranges::all_of(sight.keys, [&](const auto& key) { return key == sight.key; })) return;
  dist::require_same(ranks, facts_of_inputs(describe_seen(ranks, files, sight)),
                     own_identity().host);
}

std::vector<store::InputRecord> describe_shared_inputs(dist::Communicator& ranks,
                                                       const std::vector<InputFile>& files) {
  return describe_seen(ranks, files, look_together(ranks, files));
}

}  // namespace olmo::train
