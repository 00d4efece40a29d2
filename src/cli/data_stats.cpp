#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "data/token_file.h"
#include "data/token_stats.h"

namespace olmo::cli {
namespace {

struct StatsArguments {
  std::vector<std::string> files;
  std::uint64_t sequence_length = 2048;
  std::string dtype;
  std::optional<std::uint32_t> eos_token_id;
  bool json = false;
};

void run_stats(const StatsArguments& arguments) {
  std::vector<data::TokenStats> files;
  for (const std::string& path : arguments.files) {
    const auto sidecar = data::read_sidecar(path);
    const auto eos = arguments.eos_token_id ? arguments.eos_token_id
                     : sidecar              ? sidecar->eos_token_id
                                            : std::nullopt;
    if (!eos)
      throw Error(ErrorKind::kUsage,
                  path + ": has no sidecar that names its EOS; give --eos-token-id");
    files.push_back(during("counting " + path, [&] {
      return data::token_stats(data::TokenFile(path, data::dtype_of(arguments.dtype, sidecar)),
                               *eos, arguments.sequence_length);
    }));
  }
  if (arguments.json) {
    Json rows = Json::array();
    for (const auto& file : files) rows.push_back(data::to_json(file));
    std::cout << json_text(Json{{"files", rows},
                                {"total", data::to_json(data::sum(files))},
                                {"sequence_length", arguments.sequence_length}})
              << '\n';
    return;
  }
  for (const auto& file : files) std::cout << data::to_text(file);
  if (files.size() > 1) std::cout << data::to_text(data::sum(files));
}

}  // namespace

void add_data_stats(const Command& data) {
  const Command command = data.add("stats", "Count tokens, documents and lengths of token files");
  auto& arguments = command.options<StatsArguments>();
  command.option("FILE", arguments.files, "Token files").required();
  command.number("--sequence-length", arguments.sequence_length, kSizes,
                 "Count sequences of this length (default: 2048)");
  command
      .option("--dtype", arguments.dtype,
              "uint16 or uint32 (default: as the sidecar says, else uint16)")
      .one_of({"uint16", "uint32"});
  command.number("--eos-token-id", arguments.eos_token_id, kTokenIds,
                 "Id that ends a document (default: the sidecar's)");
  command.json(arguments.json);
  command.footer("Example:\n  olmo-harness data stats corpus.npy --sequence-length 2048");
  command.action([&arguments] { run_stats(arguments); });
}

}  // namespace olmo::cli
