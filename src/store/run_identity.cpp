#include "store/run_identity.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/output_file.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

constexpr char kFormat[] = "olmo-harness-run-1";

}  // namespace

std::optional<RunIdentity> read_identity(const fs::path& run_dir) {
  const fs::path file = run_dir / kRunIdentityName;
  if (!fs::exists(file)) return std::nullopt;
  const Json json = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  try {
    if (json.is_object() && json.at("format") == kFormat) {
      return RunIdentity{.run_id = json.at("run_id").get<std::string>(),
                         .folder = json.at("folder").get<std::string>(),
                         .database = json.at("database").get<std::string>()};
    }
  } catch (const Json::exception&) {  // the sentence below
  }
  throw Error(ErrorKind::kDamaged,
              file.string() +
                  ": does not say which run this folder holds, expected run_id, folder "
                  "and database of format " +
                  kFormat + "; if you remove it, the checkpoints say it");
}

void write_identity(const fs::path& run_dir, const std::string& run_id, const fs::path& database) {
  const nlohmann::ordered_json json = {
      {"format", kFormat},
      {"run_id", run_id},
      {"folder", fs::absolute(run_dir).lexically_normal().string()},
      {"database", fs::absolute(database).lexically_normal().string()}};
  write_file_atomically(run_dir / kRunIdentityName, json_text(json, 2) + "\n");
}

bool same_place(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto whole = [](const fs::path& path) {
    std::error_code ignored;
    const fs::path text = fs::weakly_canonical(fs::absolute(path), ignored);
    return text.has_filename() ? text : text.parent_path();
  };
  return whole(a) == whole(b);
}

// A folder that was moved is the run; one that was copied is not, for both would write to one
// record. The folder at the old place tells which it was: it still says that it holds this run, or
// it does not.
bool is_copy(const fs::path& run_dir, const RunIdentity& identity) {
  if (same_place(run_dir, identity.folder)) return false;
  try {
    const auto other = read_identity(identity.folder);
    return other && other->run_id == identity.run_id;
  } catch (const Error&) {  // whatever lies there now, it does not say that it is this run
    return false;
  }
}

}  // namespace olmo::store
