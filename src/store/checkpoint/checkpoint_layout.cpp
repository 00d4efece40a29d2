#include "store/checkpoint/checkpoint_layout.h"

#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "store/checkpoint/raw_file.h"
#include "store/checkpoint/structure_image.h"

namespace olmo::store {
namespace {

constexpr hsize_t kAlignment = kPage;  // of large datasets
constexpr std::size_t kDigestLength = 64;
constexpr std::size_t kMaxName = 1024;
constexpr std::size_t kMaxTextAttribute = 1024;

constexpr char kFileName[] = "checkpoint.h5";  // the library wants a name; it opens no file

/// The library may be built without locks, and two writers may save at the same time. It prints
/// every error to stderr unless told otherwise, thread by thread.
std::unique_lock<std::mutex> take_library() {
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  skip_cleanup_at_exit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  return lock;
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::kFailure, "checkpoint: " + what);
}

/// Owns an HDF5 id; a negative one means that the call failed.
class Handle {
 public:
  Handle(hid_t id, herr_t (*closer)(hid_t), const std::string& what) : id_(id), close_(closer) {
    if (id < 0) fail("HDF5 cannot " + what);
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  [[nodiscard]] hid_t get() const { return id_; }
  void close(const std::string& what) {
    if (close_(std::exchange(id_, -1)) < 0) fail("HDF5 cannot " + what);
  }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void require(herr_t status, const std::string& what) {
  if (status < 0) fail("HDF5 cannot " + what);
}

Handle file_access(StructureImage& image) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make an access list");
  // 1.8: the oldest format with checksummed structures, so the one that most readers know.
  require(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "set the version");
  require(H5Pset_alignment(access.get(), kAlignment, kAlignment), "set the alignment");
  require(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set the close degree");
  require(use_structure_image(access.get(), image), "set the file driver");
  return access;
}

Handle text_type(std::size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "make a type");
  require(H5Tset_size(type.get(), bytes), "set a text's length");
  require(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set a text's encoding");
  require(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "set a text's padding");
  return type;
}

/// Raw memory type of a dataset. Text: one string of the document's length.
Handle file_type(const CheckpointDataset& dataset) {
  if (dataset.dtype == "float32") return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "make a type"};
  if (dataset.dtype == "float64") return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose, "make a type"};
  if (dataset.dtype == "int64") return {H5Tcopy(H5T_STD_I64LE), H5Tclose, "make a type"};
  OLMO_CHECK(dataset.dtype == "json");
  return text_type(dataset.bytes);
}

void write_attribute(hid_t object, const std::string& name, hid_t type, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a scalar");
  const Handle attribute(
      H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
      "create the attribute " + name);
  require(H5Awrite(attribute.get(), type, value), "write the attribute " + name);
}

void write_text_attribute(hid_t object, const std::string& name, const std::string& text) {
  const Handle type = text_type(std::max<std::size_t>(1, text.size()));
  write_attribute(object, name, type.get(), text.empty() ? "" : text.data());
}

/// Numbers, truth values and short words of an object as attributes, for people and tools; the JSON
/// text has everything.
void write_attributes(hid_t object, const Json& values) {
  for (const auto& [name, value] : values.items()) {
    if (name.empty() || name.size() > kMaxName || name.find('\0') != std::string::npos) continue;
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      if (text.size() <= kMaxTextAttribute) write_text_attribute(object, name, text);
    } else if (value.is_boolean()) {
      const std::uint8_t number = value.get<bool>() ? 1 : 0;
      write_attribute(object, name, H5T_STD_U8LE, &number);
    } else if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      write_attribute(object, name, H5T_STD_U64LE, &number);
    } else if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      write_attribute(object, name, H5T_STD_I64LE, &number);
    } else if (value.is_number_float()) {
      const auto number = value.get<double>();
      write_attribute(object, name, H5T_IEEE_F64LE, &number);
    }
  }
}

/// No time stamps, so that equal contents give equal files.
void leave_times_out(hid_t creation_list) {
  require(H5Pset_obj_track_times(creation_list, false), "switch time stamps off");
}

void make_group(hid_t file, const std::string& path, const Json& attributes) {
  const Handle list(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "make a creation list");
  leave_times_out(list.get());
  const Handle group(H5Gcreate2(file, path.c_str(), H5P_DEFAULT, list.get(), H5P_DEFAULT), H5Gclose,
                     "create the group " + path);
  write_attributes(group.get(), attributes);
}

Handle make_space(const CheckpointDataset& dataset) {
  if (dataset.shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose, "make a scalar"};
  const std::vector<hsize_t> dims(dataset.shape.begin(), dataset.shape.end());
  return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose,
          "make a shape for " + dataset.path};
}

/// Contiguous, space allocated at once and never filled.
Handle creation_list() {
  Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "make a creation list");
  require(H5Pset_layout(list.get(), H5D_CONTIGUOUS), "set the layout");
  require(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), "set the allocation time");
  require(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "set the fill time");
  leave_times_out(list.get());
  return list;
}

std::uint64_t offset_of(hid_t dataset, const CheckpointDataset& description) {
  if (description.bytes == 0) return 0;
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF) fail("HDF5 gave no place to " + description.path);
  return offset;
}

void check_dataset(hid_t id, const CheckpointDataset& dataset) {
  const Handle space(H5Dget_space(id), H5Sclose, "read a shape");
  const Handle type(H5Dget_type(id), H5Tclose, "read a type");
  const Handle expected_type = file_type(dataset);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  bool same = rank == static_cast<int>(dataset.shape.size());
  if (same && rank > 0) {
    std::vector<hsize_t> dims(dataset.shape.size());
    same = H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) == rank &&
           std::equal(dims.begin(), dims.end(), dataset.shape.begin(),
                      [](hsize_t a, std::int64_t b) { return a == static_cast<hsize_t>(b); });
  }
  same = same && H5Tequal(type.get(), expected_type.get()) > 0 &&
         offset_of(id, dataset) == dataset.offset;
  if (!same) fail(dataset.path + " is not where or what was planned; nothing was published");
}

/// Its name in the manifest, and the bytes of an element.
std::pair<std::string, std::uint64_t> dtype_of(at::ScalarType type, const std::string& path) {
  switch (type) {
    case at::kFloat:
      return {"float32", 4};
    case at::kDouble:
      return {"float64", 8};
    case at::kLong:
      return {"int64", 8};
    default:
      fail(path + ": expected float32, float64 or int64, got " + std::string(c10::toString(type)));
  }
}

void check_name(const std::string& name, bool with_key) {
  const auto slash = name.find('/');
  const bool one_slash = slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
                         name.find('/', slash + 1) == std::string::npos;
  const bool printable = std::all_of(name.begin(), name.end(),
                                     [](char c) { return static_cast<unsigned char>(c) > 0x20; });
  const std::string last = with_key && one_slash ? name.substr(slash + 1) : name;
  if (name.empty() || name.size() > kMaxName || !printable || last == "." || last == ".." ||
      (with_key ? !one_slash : slash != std::string::npos)) {
    fail("a tensor cannot be stored under the name '" + name + "'");
  }
}

CheckpointDataset plan_tensor(const std::string& group, const TensorOutline& tensor) {
  check_name(tensor.name, group == "optim");
  CheckpointDataset dataset;
  dataset.path = "/" + group + "/" + tensor.name;
  const auto [dtype, item] = dtype_of(tensor.type, dataset.path);
  dataset.dtype = dtype;
  dataset.shape = tensor.shape;
  dataset.bytes = item;
  for (const auto extent : tensor.shape) dataset.bytes *= static_cast<std::uint64_t>(extent);
  return dataset;
}

void check_finite(const Json& value, const std::string& where) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    fail(where + " is " + (std::isnan(value.get<double>()) ? "NaN" : "infinite") +
         ", which JSON cannot say");
  }
  if (!value.is_structured()) return;
  for (const auto& [name, member] : value.items()) check_finite(member, where + "." + name);
}

std::string document_text(const Json& document, const std::string& path) {
  if (!document.is_object()) fail(path + " must be a JSON object");
  check_finite(document, path);
  try {
    return document.dump();
  } catch (const Json::exception& error) {
    fail(path + " is not valid UTF-8 (" + error.what() + ")");
  }
}

}  // namespace

FilePlan plan_file(const CheckpointOutline& outline) {
  const bool full = outline.kind == CheckpointKind::kFull;
  if (!full && !outline.optim.empty()) fail("a weights-only checkpoint has no optimizer tensors");
  FilePlan plan;
  for (const auto& tensor : outline.model) plan.datasets.push_back(plan_tensor("model", tensor));
  for (const auto& tensor : outline.optim) plan.datasets.push_back(plan_tensor("optim", tensor));

  std::vector<std::pair<std::string, const Json*>> texts = {{"/config", &*outline.config},
                                                            {"/trainer/state", &*outline.trainer}};
  if (full) texts.emplace_back("/optim/state", &*outline.optim_state);
  for (const auto& [path, document] : texts) {
    const auto& text = plan.documents.emplace_back(document_text(*document, path));
    CheckpointDataset dataset;
    dataset.path = path;
    dataset.dtype = "json";
    dataset.bytes = text.size();
    plan.datasets.push_back(std::move(dataset));
  }
  std::set<std::string> seen;
  for (const auto& dataset : plan.datasets) {
    if (!seen.insert(dataset.path).second) fail(dataset.path + " appears twice");
  }
  return plan;
}

void lay_out_file(StructureImage& image, const Json& root, const CheckpointOutline& outline,
                  FilePlan& plan) {
  const auto lock = take_library();
  const Handle access = file_access(image);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "make a creation list");
  leave_times_out(creation.get());
  Handle file(H5Fcreate(kFileName, H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose,
              "begin a file in memory");
  write_attributes(file.get(), root);
  const std::uint8_t zero = 0;  // sealing changes values in place and never needs new space
  write_attribute(file.get(), "complete", H5T_STD_U8LE, &zero);
  make_group(file.get(), "/model", Json::object());
  make_group(file.get(), "/trainer", *outline.trainer);
  const Json data = outline.trainer->value("data", Json::object());
  make_group(file.get(), "/data", data.is_object() ? data : Json::object());
  if (outline.kind == CheckpointKind::kFull) make_group(file.get(), "/optim", *outline.optim_state);

  const Handle list = creation_list();
  const std::string no_digest(kDigestLength, '0');
  std::set<std::string> groups;
  for (auto& dataset : plan.datasets) {
    const std::string parent = dataset.path.substr(0, dataset.path.rfind('/'));
    if (parent.rfind('/') != 0 && !parent.empty() && groups.insert(parent).second) {
      make_group(file.get(), parent, Json::object());
    }
    const Handle type = file_type(dataset);
    const Handle space = make_space(dataset);
    const Handle id(H5Dcreate2(file.get(), dataset.path.c_str(), type.get(), space.get(),
                               H5P_DEFAULT, list.get(), H5P_DEFAULT),
                    H5Dclose, "create the dataset " + dataset.path);
    dataset.offset = offset_of(id.get(), dataset);
    write_text_attribute(id.get(), "sha256", no_digest);
  }
  file.close("lay out a file in memory");
}

void seal_file(StructureImage& image, const std::vector<CheckpointDataset>& datasets) {
  const auto lock = take_library();
  const Handle access = file_access(image);
  Handle file(H5Fopen(kFileName, H5F_ACC_RDWR, access.get()), H5Fclose,
              "open the file in memory again");
  for (const auto& dataset : datasets) {
    const Handle id(H5Dopen2(file.get(), dataset.path.c_str(), H5P_DEFAULT), H5Dclose,
                    "find the dataset " + dataset.path);
    check_dataset(id.get(), dataset);
    const Handle attribute(H5Aopen(id.get(), "sha256", H5P_DEFAULT), H5Aclose,
                           "find the digest of " + dataset.path);
    const Handle type(H5Aget_type(attribute.get()), H5Tclose, "read a type");
    OLMO_CHECK(H5Tget_size(type.get()) == kDigestLength);
    require(H5Awrite(attribute.get(), type.get(), dataset.sha256.hex().data()),
            "write the digest of " + dataset.path);
  }
  const std::uint8_t one = 1;
  const Handle complete(H5Aopen(file.get(), "complete", H5P_DEFAULT), H5Aclose,
                        "find the attribute complete");
  require(H5Awrite(complete.get(), H5T_STD_U8LE, &one), "write the attribute complete");
  file.close("seal the file in memory");
}

}  // namespace olmo::store
