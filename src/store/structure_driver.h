// The HDF5 library's file driver for a StructureImage.
#pragma once

#include <hdf5.h>

#include "store/structure_image.h"

namespace olmo::store {

/// Makes `access` open `image` instead of a file on a disk; `image` outlives every file opened with
/// it. Lays out as the library's own driver does. Returns a negative number if the library refuses.
///
/// The library meets no disk here. After a write error it keeps a file that it can neither write
/// nor give up, and crashes when the process exits.
herr_t use_structure_image(hid_t access, StructureImage& image);

/// Keeps the library from cleaning up at exit, which it may not survive after an error. To be
/// called before any other function of the library.
void skip_cleanup_at_exit();

}  // namespace olmo::store
