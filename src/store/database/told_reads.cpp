#include "store/database/told_reads.h"

#include <new>

#include <sqlite3.h>

namespace olmo::store {
namespace {

/// What stands behind SQLite's own part of an open file.
struct Behind {
  sqlite3_io_methods methods;
  int (*read)(sqlite3_file*, void*, int, sqlite3_int64);
};

/// The usual way, which the other one is but for `xRead`.
sqlite3_vfs& system_way() {
  static sqlite3_vfs& found = *sqlite3_vfs_find(nullptr);
  return found;
}

int size_of_file() {
  constexpr int kAlignment = alignof(Behind);
  return (system_way().szOsFile + kAlignment - 1) / kAlignment * kAlignment;
}

void* place_behind(sqlite3_file* file) { return reinterpret_cast<char*>(file) + size_of_file(); }

int read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 from) {
  const int code = static_cast<Behind*>(place_behind(file))->read(file, to, bytes, from);
  return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code;
}

int open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* opened) {
  const int code = system_way().xOpen(&system_way(), name, file, flags, opened);
  if (file->pMethods == nullptr) return code;  // it was not opened
  auto* behind = new (place_behind(file)) Behind{*file->pMethods, file->pMethods->xRead};
  behind->methods.xRead = read;
  file->pMethods = &behind->methods;
  return code;
}

}  // namespace

const char* told_reads() {
  static sqlite3_vfs way = [] {
    sqlite3_vfs copy = system_way();
    copy.zName = "olmo-told-reads";
    copy.szOsFile = size_of_file() + static_cast<int>(sizeof(Behind));
    copy.xOpen = open;
    return copy;
  }();
  static const int registered = sqlite3_vfs_register(&way, /*makeDflt=*/0);
  return registered == SQLITE_OK ? way.zName : nullptr;
}

}  // namespace olmo::store
