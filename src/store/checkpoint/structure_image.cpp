#include "store/checkpoint/structure_image.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#if __has_include(<H5FDdevelop.h>)  // since HDF5 1.14
#include <H5FDdevelop.h>
#endif

#include "store/checkpoint/raw_file.h"

namespace olmo::store {
namespace {

/// Calls `part(page, offset in the page, offset in the range, length)` for each page of a range.
template <typename Part>
void for_each_page(std::uint64_t offset, std::uint64_t size, const Part& part) {
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t within = (offset + done) % kPage;
    const std::uint64_t length = std::min(kPage - within, size - done);
    part((offset + done) / kPage, within, done, length);
    done += length;
  }
}

/// The library's part of an open file must come first.
struct ImageFile {
  H5FD_t library;
  StructureImage* image;
  haddr_t end_of_allocation;
};

/// What an access list holds; the library copies it.
struct Access {
  StructureImage* image;
};

ImageFile* own(H5FD_t* file) { return reinterpret_cast<ImageFile*>(file); }
const ImageFile* own(const H5FD_t* file) { return reinterpret_cast<const ImageFile*>(file); }

H5FD_t* open_image(const char*, unsigned flags, hid_t list, haddr_t) {
  const auto* access = static_cast<const Access*>(H5Pget_driver_info(list));
  auto* file = access == nullptr ? nullptr : new (std::nothrow) ImageFile{};
  if (file == nullptr) return nullptr;
  file->image = access->image;
  if ((flags & H5F_ACC_TRUNC) != 0) file->image->clear();
  return &file->library;
}

herr_t close_image(H5FD_t* file) {
  delete own(file);
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  if (own(a)->image == own(b)->image) return 0;
  return own(a)->image < own(b)->image ? -1 : 1;
}

/// As the library's own driver, so that the file is laid out in the same way.
herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t end_of_allocation(const H5FD_t* file, H5FD_mem_t) { return own(file)->end_of_allocation; }

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  own(file)->end_of_allocation = address;
  return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) { return own(file)->image->size(); }

herr_t read_image(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, void* into) {
  own(file)->image->read(at, {static_cast<std::byte*>(into), size});
  return 0;
}

herr_t write_image(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t size,
                   const void* from) {
  try {
    own(file)->image->write(at, {static_cast<const std::byte*>(from), size});
    return 0;
  } catch (const std::exception&) {  // no memory; the library is C
    return -1;
  }
}

herr_t truncate_image(H5FD_t* file, hid_t, hbool_t) {
  own(file)->image->resize(own(file)->end_of_allocation);
  return 0;
}

H5FD_class_t make_driver() {
  constexpr H5FD_mem_t kLists[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(511);  // of the range for drivers of one's own
#endif
  driver.name = "olmo_structure_image";
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Access);
  driver.open = open_image;
  driver.close = close_image;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = end_of_file;
  driver.read = read_image;
  driver.write = write_image;
  driver.truncate = truncate_image;
  for (int i = 0; i < H5FD_MEM_NTYPES; ++i) driver.fl_map[i] = kLists[i];
  return driver;
}

}  // namespace

void StructureImage::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  for_each_page(offset, bytes.size(), [&](auto page, auto within, auto done, auto length) {
    auto& content = pages_[page];
    content.resize(kPage);
    std::memcpy(content.data() + within, bytes.data() + done, length);
  });
  size_ = std::max(size_, offset + bytes.size());
}

void StructureImage::read(std::uint64_t offset, std::span<std::byte> into) const {
  for_each_page(offset, into.size(), [&](auto page, auto within, auto done, auto length) {
    const auto found = pages_.find(page);
    if (found == pages_.end()) {
      std::memset(into.data() + done, 0, length);
    } else {
      std::memcpy(into.data() + done, found->second.data() + within, length);
    }
  });
}

void StructureImage::clear() {
  pages_.clear();
  size_ = 0;
}

herr_t use_structure_image(hid_t access, StructureImage& image) {
  static const H5FD_class_t kDriver = make_driver();
  const hid_t id = H5FDregister(&kDriver);
  if (id < 0) return -1;
  const Access held{&image};
  const herr_t status = H5Pset_driver(access, id, &held);
  H5FDunregister(id);  // the access list and its files hold it
  return status;
}

void skip_cleanup_at_exit() {
  static const herr_t kOnce = H5dont_atexit();
  (void)kOnce;
}

}  // namespace olmo::store
