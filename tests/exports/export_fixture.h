// A small run to export, and what lies in a folder then.
#pragma once

#include <algorithm>
#include <cmath>

#include "exports/tools.h"
#include "support/temporary_directory.h"

namespace olmo::test {

inline exports::Source a_source(const std::string& name = "tiny", double loss = 2.5) {
  exports::RunFacts facts;
  facts.run_id = "20260102T030405-0badcafe";
  facts.name = name;
  facts.status = "finished";
  facts.config = R"({"model":{"d_model":64}})";
  facts.settings = {{"model.d_model", "64"}, {"numerics", "portable"}};
  facts.tags = {"noise:seed"};
  facts.machine = {{"environment.host", "nid1"}};
  facts.begin = 1767323045;
  facts.end = 1767323099;
  return {.facts = facts, .points = [loss](const exports::OnPoint& visit) {
            visit({.step = 1,
                   .unix_seconds = 1767323046,
                   .numbers = {{"train/CrossEntropyLoss", loss}, {"optim/total_grad_norm", 1}}});
            visit({.step = 2,
                   .unix_seconds = 1767323047,
                   .numbers = {{"train/CrossEntropyLoss", std::nan("")}}});
          }};
}

/// All files below a folder, relative to it.
inline std::vector<std::string> files_of(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (!entry.is_directory())
      files.push_back(std::filesystem::relative(entry.path(), folder).string());
  std::sort(files.begin(), files.end());
  return files;
}

inline std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

}  // namespace olmo::test
