#include "data/inspect.h"

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/named_tensors.h"

namespace olmo::data {
namespace {

std::vector<InspectedDocument> cut_documents(const InspectedInstance& instance,
                                             const TokenFile& file, const Tokenizer* tokenizer,
                                             std::optional<std::uint32_t> eos) {
  std::vector<InspectedDocument> documents;
  const auto size = static_cast<std::int64_t>(instance.ids.size());
  const bool at_boundary =
      instance.first_token == 0 || (eos && file.at(instance.first_token - 1) == *eos);
  for (std::int64_t begin = 0; begin < size;) {
    std::int64_t end = begin;
    while (end < size &&
           !(eos && instance.ids[static_cast<std::size_t>(end)] == static_cast<std::int64_t>(*eos)))
      ++end;
    const bool ends_here = end < size;
    end = std::min(end + 1, size);
    InspectedDocument document{.begin = begin,
                               .end = end,
                               .begins_here = begin > 0 || at_boundary,
                               .ends_here = ends_here,
                               .text = {}};
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

/// `text` on lines of its own, each behind a bar, so that a reader sees where it begins and stops.
void indent(std::ostringstream& out, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out << "    | " << line << '\n';
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
  }
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
                           {"text", document.text}});
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
  out << "step " << step.step << ", epoch " << step.epoch << " (" << step.steps_per_epoch
      << " steps an epoch, " << step.instances_in_data << " instances in the data)\nbatch hash "
      << step.digest.hex() << '\n';
  for (const InspectedInstance& instance : step.instances) {
    out << "\ninstance " << instance.index << ": " << instance.file << ", tokens "
        << instance.first_token << " to " << instance.first_token + instance.ids.size() - 1
        << ", byte " << instance.byte_offset << ", " << instance.labels << " labels";
    if (instance.label != instance.file) out << ", label " << instance.label;
    if (instance.masked) out << ", masked by the instance filter";
    out << '\n';
    for (const InspectedDocument& document : instance.documents) {
      out << "  tokens " << document.begin << " to " << document.end - 1
          << (document.begins_here ? "" : ", begun before")
          << (document.ends_here ? "" : ", continues after") << '\n';
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
