#include "store/runs/declarations.h"

#include "core/error.h"
#include "core/hash.h"
#include "store/database/table.h"
#include "store/runs/run_facts.h"

namespace olmo::store {
namespace {

constexpr Column<Declaration> kDeclarationColumns[] = {
    column<&Declaration::declaration>("declaration"),
    column<&Declaration::created_utc>("created_utc"),
    column<&Declaration::who>("who"),
    column<&Declaration::margins>("margins"),
    column<&Declaration::record>("record"),
    column<&Declaration::sha256>("sha256"),
};
constexpr Table<Declaration> kDeclarations{"declarations", "run_id", kDeclarationColumns, 7};
constexpr char kDeclarationEvent[] = "declaration";

std::string seal_of(const std::string& run_id, const Declaration& declaration,
                    const std::string& before) {
  Sha256 hash;
  hash.update_u64(static_cast<std::uint64_t>(declaration.declaration));
  for (const auto& text : {run_id, declaration.created_utc, declaration.who, declaration.margins,
                           declaration.record, before})
    hash.update_u64(text.size()).update(text);
  return hash.finish().hex();
}

std::string record_of(const RecordDatabase& db, const std::string& run_id) {
  std::string record = "0";
  const auto take = [&](const auto&, const auto& row) { record = std::get<std::string>(row[0]); };
  db.query("SELECT CAST(count(*) AS TEXT) FROM imported_steps WHERE run_id = ?", {run_id}, take);
  db.query("SELECT chain_hash FROM surviving_steps WHERE run_id = ? ORDER BY step DESC LIMIT 1",
           {run_id}, take);
  return record;
}

}  // namespace

Declaration declare(RecordDatabase& db, const std::string& run_id, const std::string& who,
                    const std::string& margins) {
  Declaration made{.created_utc = utc_now(), .who = who, .margins = margins};
  db.write_after([&]() -> std::vector<RecordDatabase::Row> {
    const auto before = read_declarations(db, run_id);
    if (const auto altered = altered_declarations(db, run_id, before); !altered.empty())
      throw Error(ErrorKind::kDamaged, db.path().string() + ": run " + run_id + ": " +
                                           altered.front() + "; no other can follow it");
    made.declaration = std::ssize(before) + 1;
    made.record = record_of(db, run_id);
    made.sha256 = seal_of(run_id, made, before.empty() ? "" : before.back().sha256);
    return {row_for<kDeclarations>(run_id, made),
            event_now(db, run_id, kDeclarationEvent,
                      made.margins + " by " + who + ", " + name_by_hash(made.sha256))};
  });
  return made;
}

std::vector<Declaration> read_declarations(const RecordDatabase& db, const std::string& run_id) {
  return read_all(db, kDeclarations, "WHERE run_id = ? ORDER BY declaration", {run_id});
}

std::vector<std::string> altered_declarations(const RecordDatabase& db, const std::string& run_id,
                                              const std::vector<Declaration>& declarations) {
  std::vector<std::string> altered;
  std::string before;
  std::int64_t number = 0;
  for (const Declaration& declaration : declarations) {
    if (declaration.declaration != ++number ||
        declaration.sha256 != seal_of(run_id, declaration, before)) {
      altered.push_back(
          "declaration " + std::to_string(declaration.declaration) +
          " of margins is not what was declared: altered, or one before it was removed");
      return altered;
    }
    before = declaration.sha256;
  }
  std::vector<std::string> names;
  for (const auto& declaration : declarations) names.push_back(name_by_hash(declaration.sha256));
  if (const auto event = event_without(db, run_id, kDeclarationEvent, names))
    altered.push_back("the margins that were declared at " + event->utc + " (" + event->message +
                      ") are not in the record: rows of declarations were removed");
  return altered;
}

}  // namespace olmo::store
