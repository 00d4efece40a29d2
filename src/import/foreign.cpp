#include "import/foreign.h"

#include <filesystem>

#include "core/error.h"
#include "import/log.h"

namespace olmo::import {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(ErrorKind::kInput, file + ": " + what);
}

/// For a shell and for the Python string inside: names with other characters are not put into a
/// command.
std::string name_or(const std::string& file, const char* placeholder) {
  const bool plain = !file.empty() && file.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./+=,@") == std::string::npos;
  return plain ? file : placeholder;
}

bool is_event_file(std::string_view bytes, const std::string& file) {
  return std::filesystem::path(file).filename().string().find("tfevents") != std::string::npos ||
         bytes.substr(0, 64).find("brain.Event:") != bytes.npos;
}

}  // namespace

void refuse_foreign_log(std::string_view bytes, const std::string& file) {
  using namespace std::string_view_literals;
  const auto begins = [&](std::string_view magic) { return bytes.starts_with(magic); };
  if (begins("PAR1")) {
    const std::string name = name_or(file, "history.parquet");
    refuse(file,
           "is Parquet, which is not read here. Make a CSV of it, with every digit, and import "
           "that:\n  python3 -m pip install pandas pyarrow\n  python3 -c \"import pandas; "
           "pandas.read_parquet('" +
               name + "').to_csv('" + std::filesystem::path(name).stem().string() +
               ".csv', index=False)\"");
  }
  if (begins(":W&B"))
    refuse(file,
           "is W&B's own binary record, which is not read here. Where W&B's service can be "
           "reached, `wandb sync` the folder, and then\n  python3 -c \"import wandb, json; "
           "[print(json.dumps(row)) for row in "
           "wandb.Api().run('ENTITY/PROJECT/RUN_ID').scan_history()]\" > history.jsonl");
  if (is_event_file(bytes, file))
    refuse(file,
           "is a TensorBoard event file, which is not read here: export its scalars as CSV (\"Show "
           "data download links\" in TensorBoard)");
  if (begins("SQLite format 3\0"sv))
    refuse(file, "is a database and not a log: the reports read databases of ours as they are");
  if (begins("\x1f\x8b") || begins("\x28\xb5\x2f\xfd") || begins("PK\x03\x04") || begins("BZh"))
    refuse(file, "is compressed: unpack it first");
  if (begins("\xff\xfe"sv) || begins("\xfe\xff"sv))
    refuse(file, "is UTF-16 text: save it as UTF-8, e.g. with iconv -f UTF-16 -t UTF-8 FILE > NEW");
  if (bytes.substr(0, 4096).find('\0') != bytes.npos)
    refuse(file, "is no text (it has zero bytes), so no log that is known");
}

}  // namespace olmo::import
