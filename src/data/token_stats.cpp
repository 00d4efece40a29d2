#include "data/token_stats.h"

#include <algorithm>
#include <bit>
#include <span>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"

namespace olmo::data {
namespace {

Json to_json(const std::optional<std::vector<SourceCount>>& sources) {
  if (!sources) return nullptr;
  Json list = Json::array();
  for (const SourceCount& count : *sources)
    list.push_back(
        {{"source", count.source}, {"documents", count.documents}, {"tokens", count.tokens}});
  return list;
}

/// The largest sources, a line each.
void say_sources(std::ostringstream& out, const std::vector<SourceCount>& sources) {
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < std::min(kShown, sources.size()); ++i)
    out << "  " << safe_line(sources[i].source) << ": " << sources[i].tokens << " tokens, "
        << counted(static_cast<std::int64_t>(sources[i].documents), "document") << '\n';
  if (sources.size() > kShown)
    out << "  and " << sources.size() - kShown << " more sources (--json tells all)\n";
}

void add_document(TokenStats& stats, std::uint64_t length) {
  stats.shortest = stats.documents == 0 ? length : std::min(stats.shortest, length);
  stats.longest = std::max(stats.longest, length);
  ++stats.documents;
  const auto bin = static_cast<std::size_t>(std::bit_width(length) - 1);
  if (stats.lengths.size() <= bin) stats.lengths.resize(bin + 1);
  ++stats.lengths[bin];
}

}  // namespace

TokenStats token_stats(const TokenFile& file, std::uint32_t eos_token_id,
                       std::uint64_t sequence_length) {
  OLMO_CHECK(sequence_length > 0);
  TokenStats stats;
  stats.path = file.path().string();
  stats.dtype = file.dtype();
  stats.tokens = file.size();
  stats.sequences = file.size() / sequence_length;
  stats.tail = file.size() % sequence_length;
  std::vector<std::uint32_t> block(1 << 16);
  std::uint64_t length = 0;
  for (std::uint64_t first = 0; first < file.size(); first += block.size()) {
    const std::span<std::uint32_t> ids(
        block.data(),
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file.size() - first)));
    file.read(first, ids);
    for (const std::uint32_t id : ids) {
      stats.max_id = std::max(stats.max_id, id);
      ++length;
      if (id != eos_token_id) continue;
      add_document(stats, length);
      length = 0;
    }
  }
  stats.ends_with_eos = length == 0;
  if (length > 0) add_document(stats, length);
  if (const auto index = find_document_index(file)) stats.sources = count_sources(*index);
  return stats;
}

TokenStats sum(const std::vector<TokenStats>& files) {
  TokenStats total;
  total.path = "total";
  total.ends_with_eos = true;
  for (const TokenStats& file : files) {
    total.dtype = file.dtype;
    total.shortest = total.documents == 0 ? file.shortest : std::min(total.shortest, file.shortest);
    total.tokens += file.tokens;
    total.documents += file.documents;
    total.ends_with_eos = total.ends_with_eos && file.ends_with_eos;
    total.longest = std::max(total.longest, file.longest);
    total.max_id = std::max(total.max_id, file.max_id);
    total.sequences += file.sequences;
    total.tail += file.tail;
    if (file.sources)
      total.sources = sum(total.sources.value_or(std::vector<SourceCount>()), *file.sources);
    if (total.lengths.size() < file.lengths.size()) total.lengths.resize(file.lengths.size());
    for (std::size_t bin = 0; bin < file.lengths.size(); ++bin)
      total.lengths[bin] += file.lengths[bin];
  }
  return total;
}

Json to_json(const TokenStats& stats) {
  return {{"path", stats.path},
          {"dtype", to_string(stats.dtype)},
          {"tokens", stats.tokens},
          {"documents", stats.documents},
          {"ends_with_eos", stats.ends_with_eos},
          {"shortest", stats.shortest},
          {"longest", stats.longest},
          {"max_id", stats.max_id},
          {"sequences", stats.sequences},
          {"tail", stats.tail},
          {"length_histogram", stats.lengths},
          {"sources", to_json(stats.sources)}};
}

std::string to_text(const TokenStats& stats) {
  std::ostringstream out;
  out << safe_line(stats.path) << '\n'
      << "  tokens     " << stats.tokens << " (" << to_string(stats.dtype) << "), largest id "
      << stats.max_id << '\n'
      << "  documents  " << stats.documents << ", of " << stats.shortest << " to " << stats.longest
      << " tokens" << (stats.ends_with_eos ? "" : ", the last without EOS") << '\n'
      << "  sequences  " << stats.sequences << ", "
      << counted(static_cast<std::int64_t>(stats.tail), "token") << " left over\n";
  for (std::size_t bin = 0; bin < stats.lengths.size(); ++bin) {
    if (stats.lengths[bin] == 0) continue;
    out << "  documents of " << (std::uint64_t{1} << bin) << " to "
        << ((std::uint64_t{1} << bin) * 2 - 1) << " tokens: " << stats.lengths[bin] << '\n';
  }
  if (stats.sources) say_sources(out, *stats.sources);
  return std::move(out).str();
}

}  // namespace olmo::data
