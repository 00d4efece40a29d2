// What the columns of a table and the members of a struct have to do with each other, said once: a
// list of columns, from which INSERT, SELECT and the binding of values are made.
//
// A new column is a migration (store/database/schema.cpp), a member of the struct, and a line in
// the list. Only sources of this room include this file; what others need are the functions that
// use it.
#pragma once

#include <span>
#include <type_traits>

#include "store/database/record_database.h"

namespace olmo::store {

/// One column. `since` is the schema version that added it: in an older file, which is read as it
/// is, `before` stands for it.
template <class Record>
struct Column {
  const char* name;
  SqlValue (*get)(const Record&);
  void (*set)(Record&, const Statement&, int index);
  int since = 1;
  const char* before = "NULL";
  bool is_number = false;  ///< or nothing
};

/// A table whose rows are `Record`s. `owner` is the column that says whose rows they are (run_id,
/// evaluation_id) and that the record need not hold; empty: there is none.
template <class RecordType>
struct Table {
  using Record = RecordType;
  const char* name;
  const char* owner;
  std::span<const Column<Record>> columns;
  int since = 1;  ///< schema version
};

/// How a file of this schema is asked for the column.
template <class Record>
const char* name_in(const RecordDatabase& records, const Column<Record>& column) {
  return records.schema_version() < column.since ? column.before : column.name;
}

namespace table_detail {

inline SqlValue to_sql(const std::string& value) { return value; }
inline SqlValue to_sql(double value) { return value; }
template <class Integer>
requires std::is_integral_v<Integer> SqlValue to_sql(Integer value) {
  return static_cast<std::int64_t>(value);
}
template <class T>
SqlValue to_sql(const std::optional<T>& value) {
  return value ? to_sql(*value) : SqlValue{};
}

inline void from_sql(const Statement& row, int index, std::string& value) {
  value = row.text_view(index);
}
inline void from_sql(const Statement& row, int index, double& value) { value = row.real(index); }
template <class Integer>
requires std::is_integral_v<Integer>
void from_sql(const Statement& row, int index, Integer& value) {
  value = static_cast<Integer>(row.integer(index));
}
template <class T>
void from_sql(const Statement& row, int index, std::optional<T>& value) {
  value.reset();
  if (!row.is_null(index)) from_sql(row, index, value.emplace());
}

template <class Record, class Member>
Record record_of(Member Record::*);

template <class Record, class Member, class... Rest>
auto member_of(Member Record::*, Rest... rest) {
  if constexpr (sizeof...(rest) == 0)
    return Member{};
  else
    return member_of(rest...);
}

template <class Member>
constexpr bool holds_text =
    std::is_same_v<Member, std::string> || std::is_same_v<Member, std::optional<std::string>>;

}  // namespace table_detail

/// The column of a member; of a member of a member, if several are given. NULL is read as the empty
/// text, as NaN, as 0, or as nothing where the member is optional.
template <auto kFirst, auto... kRest>
constexpr auto column(const char* name, int since = 1, const char* before = "NULL") {
  using Record = decltype(table_detail::record_of(kFirst));
  return Column<Record>{
      name,
      [](const Record& record) { return table_detail::to_sql(((record.*kFirst).*....*kRest)); },
      [](Record& record, const Statement& row, int index) {
        table_detail::from_sql(row, index, ((record.*kFirst).*....*kRest));
      },
      since,
      before,
      !table_detail::holds_text<decltype(table_detail::member_of(kFirst, kRest...))>};
}

/// The same of a text that is empty where the column is NULL.
template <auto kMember>
constexpr auto column_or_null(const char* name, int since = 1) {
  auto same = column<kMember>(name, since);
  using Record = decltype(table_detail::record_of(kMember));
  same.get = [](const Record& record) {
    return (record.*kMember).empty() ? SqlValue{} : SqlValue(record.*kMember);
  };
  return same;
}

enum class Insert { kNew, kReplace, kIgnore };

/// The row that writes `record` into `kTable`; `owner` fills the column of that name.
template <const auto& kTable, Insert kHow = Insert::kNew>
RecordDatabase::Row row_for(const std::string& owner,
                            const typename std::remove_cvref_t<decltype(kTable)>::Record& record) {
  const bool owned = *kTable.owner != 0;
  static const std::string kSql = [&] {
    std::string names = kTable.owner, marks = owned ? "?" : "";
    for (const auto& column : kTable.columns) {
      const char* comma = names.empty() ? "" : ", ";
      names += std::string(comma) + column.name;
      marks += std::string(comma) + "?";
    }
    const char* how = kHow == Insert::kReplace  ? "OR REPLACE "
                      : kHow == Insert::kIgnore ? "OR IGNORE "
                                                : "";
    return std::string("INSERT ") + how + "INTO " + kTable.name + " (" + names + ") VALUES (" +
           marks + ")";
  }();
  std::vector<SqlValue> values;
  values.reserve(kTable.columns.size() + 1);
  if (owned) values.emplace_back(owner);
  for (const auto& column : kTable.columns) values.push_back(column.get(record));
  return {kSql.c_str(), std::move(values)};
}

/// The rows of several records of one owner.
template <const auto& kTable, Insert kHow = Insert::kNew, class Records>
std::vector<RecordDatabase::Row> rows_for(const std::string& owner, const Records& records) {
  std::vector<RecordDatabase::Row> rows;
  for (const auto& record : records) rows.push_back(row_for<kTable, kHow>(owner, record));
  return rows;
}

/// Calls `visit` with every record that `which` (WHERE … ORDER BY …) chooses. It is one object,
/// filled anew for each row. A file of a schema that lacks the table has no rows.
template <class Record, class Visit>
void for_each(const RecordDatabase& records, const Table<Record>& table, const std::string& which,
              const std::vector<SqlValue>& parameters, const Visit& visit) {
  if (records.schema_version() < table.since) return;
  std::string sql = "SELECT ";
  for (const auto& column : table.columns) {
    if (&column != &table.columns.front()) sql += ", ";
    sql += name_in(records, column);
  }
  const auto lock = records.lock();
  Statement row = records.connection().prepare(sql + " FROM " + table.name + " " + which);
  row.bind_all(parameters);
  Record record;
  while (row.step()) {
    int index = 0;
    for (const auto& column : table.columns) column.set(record, row, index++);
    visit(record);
  }
}

/// All of them.
template <class Record>
std::vector<Record> read_all(const RecordDatabase& records, const Table<Record>& table,
                             const std::string& which, const std::vector<SqlValue>& parameters) {
  std::vector<Record> found;
  for_each(records, table, which, parameters,
           [&](const Record& record) { found.push_back(record); });
  return found;
}

/// The last of them, if there is one.
template <class Record>
std::optional<Record> read_one(const RecordDatabase& records, const Table<Record>& table,
                               const std::string& which, const std::vector<SqlValue>& parameters) {
  std::optional<Record> found;
  for_each(records, table, which, parameters, [&](const Record& record) { found = record; });
  return found;
}

}  // namespace olmo::store
