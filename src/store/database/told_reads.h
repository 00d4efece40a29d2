#pragma once

namespace olmo::store {

/// The name of SQLite's way to the operating system, by which a read that fails is told as that
/// ("disk I/O error", with the system's reason). By its usual one a disk or a server that answers
/// with EIO, ENXIO or ERANGE is a corrupt file system, and the result "database disk image is
/// malformed": the record of a sound run would be called damaged while a file server is away.
const char* told_reads();

}  // namespace olmo::store
