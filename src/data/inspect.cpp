#include "data/inspect.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"

namespace olmo::data {
namespace {

std::vector<InspectedDocument> cut_documents(const InspectedInstance& instance,
                                             const TokenFile& file, const Tokenizer* tokenizer,
                                             std::optional<std::uint32_t> eos) {
  std::vector<InspectedDocument> documents;
  const auto size = static_cast<std::int64_t>(instance.ids.size());
  std::vector<std::int32_t> starts(instance.ids.size());
  if (eos) find_document_starts(instance.ids, *eos, starts);
  const bool at_boundary =
      instance.first_token == 0 || (eos && file.at(instance.first_token - 1) == *eos);
  for (std::int64_t begin = 0; begin < size;) {
    const auto end = std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin();
    const bool ends_here = eos && instance.ids[static_cast<std::size_t>(end) - 1] == *eos;
    InspectedDocument document{.begin = begin,
                               .end = end,
                               .begins_here = begin > 0 || at_boundary,
                               .ends_here = ends_here,
                               .text = {},
                               .origin = {}};
    if (tokenizer != nullptr) {
      const std::vector<std::uint32_t> ids(instance.ids.begin() + begin,
                                           instance.ids.begin() + end);
      document.text = tokenizer->decode(ids);
    }
    documents.push_back(std::move(document));
    begin = end;
  }
  return documents;
}

/// Asks the index of a token file, if there is one, where the documents of its instances are from.
void name_documents(const TokenFile& file, const std::vector<InspectedInstance*>& instances) {
  const auto found = find_document_index(file);
  if (!found) return;
  std::vector<TokenRange> ranges;
  for (const InspectedInstance* instance : instances)
    ranges.push_back(
        {.begin = instance->first_token, .end = instance->first_token + instance->ids.size()});
  const std::vector<IndexedDocument> index = find_documents(*found, std::move(ranges));
  for (InspectedInstance* instance : instances) {
    for (InspectedDocument& document : instance->documents) {
      const auto first = instance->first_token + static_cast<std::uint64_t>(document.begin);
      // The last one that begins at the token or before it.
      const auto after = std::ranges::upper_bound(
          index, first, {}, [](const IndexedDocument& row) { return row.tokens.begin; });
      if (after != index.begin() && std::prev(after)->tokens.end > first)
        document.origin = std::prev(after)->origin;
    }
  }
}

/// `text` on lines of its own, each behind a bar, so that a reader sees where it begins and stops.
void indent(std::ostringstream& out, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out << "    | " << line << '\n';
}

Json to_json(const std::optional<DocumentOrigin>& origin) {
  if (!origin) return nullptr;
  return {{"id", origin->id}, {"source", origin->source}, {"line", origin->line}};
}

}  // namespace

InspectedStep inspect_step(BatchSource& source, std::uint64_t step, const Tokenizer* tokenizer,
                           std::optional<std::uint32_t> eos_token_id) {
  if (step == 0) throw Error(ErrorKind::kUsage, "data inspect: steps count from 1, got 0");
  const Batch batch = source.batch(step);
  const Dataset& dataset = source.dataset();
  InspectedStep seen{.step = step,
                     .epoch = batch.epoch,
                     .steps_per_epoch = source.steps_per_epoch(),
                     .instances_in_data = dataset.size(),
                     .digest = batch.digest,
                     .instances = {}};
  const std::int64_t length = dataset.sequence_length();
  std::map<std::size_t, std::vector<InspectedInstance*>> by_file;
  seen.instances.reserve(batch.indices.size());  // they are pointed to
  for (std::size_t row = 0; row < batch.indices.size(); ++row) {
    InspectedInstance& instance = seen.instances.emplace_back();
    const InstancePlace place = dataset.place(batch.indices[row]);
    const TokenFile& file = dataset.files()[place.file];
    const auto offset = static_cast<std::int64_t>(row) * length;
    const std::int64_t* ids = host_span<std::int64_t>(batch.input_ids_BL).data() + offset;
    const std::int64_t* labels = host_span<std::int64_t>(batch.labels_BL).data() + offset;
    instance.index = batch.indices[row];
    instance.file = file.path().string();
    instance.label = dataset.label(place.file);
    instance.first_token = place.first_token;
    instance.byte_offset = place.first_token * bytes_per_token(file.dtype());
    instance.masked = batch.instance_mask[row] == 0;
    instance.labels = length - std::count(labels, labels + length, kIgnoredLabel);
    instance.ids.assign(ids, ids + length);
    instance.documents = cut_documents(instance, file, tokenizer, eos_token_id);
    by_file[place.file].push_back(&instance);
  }
  for (const auto& [file, instances] : by_file) name_documents(dataset.files()[file], instances);
  return seen;
}

Json to_json(const InspectedStep& step) {
  Json instances = Json::array();
  for (const InspectedInstance& instance : step.instances) {
    Json documents = Json::array();
    for (const InspectedDocument& document : instance.documents) {
      documents.push_back({{"begin", document.begin},
                           {"end", document.end},
                           {"begins_here", document.begins_here},
                           {"ends_here", document.ends_here},
                           {"text", document.text},
                           {"origin", to_json(document.origin)}});
    }
    instances.push_back({{"index", instance.index},
                         {"file", instance.file},
                         {"label", instance.label},
                         {"first_token", instance.first_token},
                         {"byte_offset", instance.byte_offset},
                         {"masked", instance.masked},
                         {"labels", instance.labels},
                         {"documents", std::move(documents)},
                         {"ids", instance.ids}});
  }
  return {{"step", step.step},
          {"epoch", step.epoch},
          {"steps_per_epoch", step.steps_per_epoch},
          {"instances_in_data", step.instances_in_data},
          {"batch_hash", step.digest.hex()},
          {"instances", std::move(instances)}};
}

std::string to_text(const InspectedStep& step) {
  std::ostringstream out;
  out << "step " << step.step << ", epoch " << step.epoch << " ("
      << counted(static_cast<std::int64_t>(step.steps_per_epoch), "step") << " an epoch, "
      << counted(static_cast<std::int64_t>(step.instances_in_data), "instance")
      << " in the data)\nbatch hash " << step.digest.hex() << '\n';
  for (const InspectedInstance& instance : step.instances) {
    out << "\ninstance " << instance.index << ": " << safe_line(instance.file) << ", tokens "
        << instance.first_token << " to " << instance.first_token + instance.ids.size() - 1
        << ", byte " << instance.byte_offset << ", " << counted(instance.labels, "label");
    if (instance.label != instance.file) out << ", label " << safe_line(instance.label);
    if (instance.masked) out << ", masked by the instance filter";
    out << '\n';
    for (const InspectedDocument& document : instance.documents) {
      out << "  tokens " << document.begin << " to " << document.end - 1
          << (document.begins_here ? "" : ", begun before")
          << (document.ends_here ? "" : ", continues after");
      if (document.origin)
        out << ", " << safe_line(document.origin->source) << ':' << document.origin->line
            << (document.origin->id.empty() ? "" : " (" + safe_line(document.origin->id) + ")");
      out << '\n';
      if (document.text.empty()) {
        out << "    |";
        for (auto t = document.begin; t < document.end; ++t)
          out << ' ' << instance.ids[static_cast<std::size_t>(t)];
        out << '\n';
      } else {
        indent(out, document.text);
      }
    }
  }
  return std::move(out).str();
}

}  // namespace olmo::data
