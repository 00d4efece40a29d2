#include "eval/asked.h"

#include <algorithm>

#include "eval/load_task.h"

namespace olmo::eval {

LoadedTask render_again(const TaskCatalog& catalog, const std::string& task,
                        const std::string& convention, const std::filesystem::path& data_folder,
                        std::optional<std::int64_t> limit) {
  return load_task(catalog.resolve(std::vector{task}, convention, data_folder).front(), limit);
}

const Example* find_example(const LoadedTask& task, std::int64_t doc_id) {
  const auto found = std::find_if(task.examples.begin(), task.examples.end(),
                                  [&](const Example& one) { return one.doc_id == doc_id; });
  return found == task.examples.end() ? nullptr : &*found;
}

bool was_asked(const Example& example, std::span<const OptionRow> rows) {
  return std::all_of(rows.begin(), rows.end(), [&](const OptionRow& row) {
    const auto index = static_cast<std::size_t>(row.cont_id);
    return index < example.options.size() &&
           request_hash(example.options[index].context, example.options[index].continuation) ==
               row.request_hash;
  });
}

}  // namespace olmo::eval
