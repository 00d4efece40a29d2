#include "store/foreign/torch_file.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/text/safe_text.h"

namespace olmo::store {
namespace {

using Kind = PickleValue::Kind;
using Records = std::map<std::string, ZipRecord>;

constexpr std::string_view kPickle = "data.pkl";
constexpr std::uint64_t kLargestPickle = 16 << 20;
constexpr int kDeepest = 8;                   // a dict's dict's … tensor
constexpr std::size_t kMostValues = 1 << 18;  // a small file can name one value many times
constexpr std::size_t kLongestName = 1 << 10;

/// Classes of torch's storages, and safetensors' words for what lies in them.
constexpr std::array<std::pair<const char*, const char*>, 10> kStorages = {{
    {"FloatStorage", "F32"},
    {"BFloat16Storage", "BF16"},
    {"HalfStorage", "F16"},
    {"DoubleStorage", "F64"},
    {"LongStorage", "I64"},
    {"IntStorage", "I32"},
    {"ShortStorage", "I16"},
    {"CharStorage", "I8"},
    {"ByteStorage", "U8"},
    {"BoolStorage", "BOOL"},
}};

/// A file of torch before 1.6 begins as a pickle does.
void refuse_unzipped(const MappedFile& file) {
  constexpr std::string_view kBegin = "\x80\x02";
  std::string begin(std::min(kBegin.size(), file.bytes().size()), '\0');
  copy_mapped(file, 0, std::as_writable_bytes(std::span(begin)));
  if (begin != kBegin) return;
  throw Error(ErrorKind::kInput,
              file.path().string() +
                  ": is no zip file, as torch.save writes it from version 1.6 on; save it again: "
                  "`torch.save(torch.load(FILE, weights_only=True), FILE)`");
}

Records read_records(const MappedFile& file) {
  refuse_unzipped(file);
  return read_zip_directory(file);
}

/// What the names of all records begin with: `archive/`.
std::string folder_of(const Records& records, const std::string& where) {
  for (const auto& [name, record] : records) {
    const auto slash = name.find('/');
    if (slash != std::string::npos && name.substr(slash + 1) == kPickle)
      return name.substr(0, slash + 1);
  }
  throw_damaged(where, "holds no " + std::string(kPickle) + ", as torch.save writes it");
}

std::string read_pickle(const MappedFile& file, const Records& records) {
  const std::string where = file.path().string();
  const std::string folder = folder_of(records, where);
  const auto order = records.find(folder + "byteorder");
  if (order != records.end() && read_zip_record(file, order->first, order->second) == "big")
    throw Error(ErrorKind::kInput, where + ": was saved on a big-endian machine");
  const auto& [name, record] = *records.find(folder + std::string(kPickle));
  if (record.bytes <= kLargestPickle) return read_zip_record(file, name, record);
  throw Error(ErrorKind::kInput, where + ": its " + std::string(kPickle) + " has " +
                                     std::to_string(record.bytes) + " bytes, expected at most " +
                                     std::to_string(kLargestPickle));
}

/// Finds the tensors below a value.
class TensorFinder {
 public:
  TensorFinder(const MappedFile& file, const Records& records)
      : where_(file.path().string()),
        records_(records),
        folder_(folder_of(records, where_) + "data/") {}

  std::vector<TensorEntry> find(const PickleValue& root) {
    visit(root, "", 0);
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw Error(ErrorKind::kInput, safe_line(where_ + ": tensor " + name + ": " + what));
  }
  [[noreturn]] void damaged(const std::string& name, const std::string& what) const {
    throw_damaged(where_ + ": tensor " + name, what);
  }

  void visit(const PickleValue& value, const std::string& name, int depth) {
    if (++visited_ > kMostValues || depth > kDeepest || name.size() > kLongestName)
      throw Error(ErrorKind::kInput, where_ + ": the pickle holds more than any checkpoint");
    const auto visit_item = [&](const PickleValue& item, const std::string& key) {
      visit(item, name.empty() ? key : name + "/" + key, depth + 1);
    };
    const auto& items = value.items;
    if (value.kind == Kind::kCall) {
      visit_object(*items[0], items[1]->items, name, depth);
    } else if (value.kind == Kind::kList) {
      for (std::size_t i = 0; i < items.size(); ++i) visit_item(*items[i], std::to_string(i));
    } else if (value.kind == Kind::kDict) {
      for (std::size_t i = 0; i < items.size(); i += 2) {
        const PickleValue& key = *items[i];
        if (key.kind == Kind::kText) visit_item(*items[i + 1], std::string(key.text));
        if (key.kind == Kind::kInteger) visit_item(*items[i + 1], std::to_string(key.integer));
      }
    }
  }

  using Arguments = std::vector<const PickleValue*>;

  void visit_object(const PickleValue& maker, const Arguments& arguments, const std::string& name,
                    int depth) {
    if (maker.kind != Kind::kName) return;
    const auto& module = maker.items[0]->text;
    if (module != "torch._utils" && module != "torch._tensor") return;
    if (maker.is_name("torch._utils", "_rebuild_parameter") && !arguments.empty()) {
      visit(*arguments[0], name, depth + 1);
    } else if (maker.is_name("torch._utils", "_rebuild_tensor_v2") && arguments.size() >= 4) {
      found_.push_back(entry_of(name, arguments));
    } else {
      refuse(name, "is made by " + std::string(maker.items[1]->text) +
                       ", expected a plain tensor (_rebuild_tensor_v2)");
    }
  }

  std::vector<std::uint64_t> numbers(const std::string& name, const PickleValue& list) const {
    std::vector<std::uint64_t> numbers;
    for (const PickleValue* item : list.items) {
      if (item->kind != Kind::kInteger || item->integer < 0)
        damaged(name, "its shape holds something else than whole numbers");
      numbers.push_back(static_cast<std::uint64_t>(item->integer));
    }
    return numbers;
  }

  /// From (storage, offset, shape, strides, …).
  [[nodiscard]] TensorEntry entry_of(const std::string& name, const Arguments& arguments) const {
    const auto [dtype, record] = storage_of(name, *arguments[0]);
    const auto shape = numbers(name, *arguments[2]), strides = numbers(name, *arguments[3]);
    const std::size_t bytes = checked_tensor_bytes(where_ + ": tensor " + name, *dtype, shape);
    check_order(name, shape, strides);
    const PickleValue& begin = *arguments[1];
    const auto values = record->bytes / dtype->bytes;
    const auto offset = static_cast<std::uint64_t>(begin.integer);
    if (begin.kind != Kind::kInteger || offset > values ||
        bytes > record->bytes - offset * dtype->bytes)
      damaged(name, "lies outside of its storage");
    TensorEntry entry{.name = name,
                      .dtype = dtype->word,
                      .shape = std::vector<std::int64_t>(shape.begin(), shape.end()),
                      .offset = record->offset + offset * dtype->bytes,
                      .bytes = bytes};
    if (bytes == record->bytes) entry.crc32 = record->crc32;
    return entry;
  }

  /// From ("storage", class, key, device, number of values), as the saver calls it.
  [[nodiscard]] std::pair<const TensorDtype*, const ZipRecord*> storage_of(
      const std::string& name, const PickleValue& storage) const {
    const bool is_kept = storage.kind == Kind::kPersistent && storage.items[0]->items.size() == 5;
    if (!is_kept) damaged(name, "has no storage");
    const auto& facts = storage.items[0]->items;
    const auto found = std::ranges::find_if(
        kStorages, [&](const auto& known) { return facts[1]->is_name("torch", known.first); });
    if (found == kStorages.end()) refuse(name, "has a dtype that is not known");
    const auto record = records_.find(folder_ + std::string(facts[2]->text));
    if (record == records_.end()) damaged(name, "its storage is missing");
    return {find_tensor_dtype(found->second), &record->second};
  }

  /// The values are to lie as those of a new tensor.
  void check_order(const std::string& name, const std::vector<std::uint64_t>& shape,
                   const std::vector<std::uint64_t>& strides) const {
    if (shape.size() != strides.size()) damaged(name, "has another number of strides than sizes");
    std::uint64_t expected = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] > 1 && strides[i] != expected)
        refuse(name, "its values do not lie one after the other; save it `.contiguous()`");
      expected *= std::max<std::uint64_t>(shape[i], 1);  // as torch does
    }
  }

  std::string where_;
  const Records& records_;
  std::string folder_;
  std::vector<TensorEntry> found_;
  std::size_t visited_ = 0;
};

/// LibTorch's writer of zip files into a file of ours.
class RecordWriter {
 public:
  explicit RecordWriter(const std::filesystem::path& path)
      : file_(path), writer_([this](const void* bytes, std::size_t size) {
          append({static_cast<const char*>(bytes), size});
          return size;
        }) {}

  void write(const std::string& name, std::string_view bytes) {
    writer_.writeRecord(name, bytes.data(), bytes.size());
    rethrow();
  }

  void publish() {
    writer_.writeEndOfFile();
    rethrow();
    file_.publish();
  }

 private:
  /// The writer writes an end even when it is destroyed, and must not be told of an error there:
  /// the first one is kept, and nothing is written after it.
  void append(std::string_view bytes) noexcept {
    if (error_) return;
    try {
      file_.append(bytes);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  OutputFile file_;
  std::exception_ptr error_;
  caffe2::serialize::PyTorchStreamWriter writer_;
};

}  // namespace

TorchFile::TorchFile(const std::filesystem::path& path)
    : TensorFile(path),
      records_(read_records(map())),
      pickle_(read_pickle(map(), records_), path.string()) {
  if (root().kind != Kind::kDict)
    throw Error(ErrorKind::kInput, path.string() + ": the pickle holds no dict");
  set_entries(TensorFinder(map(), records_).find(root()));
}

void write_torch_file(const std::filesystem::path& path, const NamedTensors& tensors) {
  c10::Dict<std::string, at::Tensor> dict;
  for (const auto& [name, tensor] : tensors) {
    OLMO_CHECK(tensor.is_contiguous() && tensor.device().is_cpu());
    OLMO_CHECK(dict.insert(name, tensor).second);
  }
  std::string pickle;
  torch::jit::Pickler pickler(
      [&](const char* bytes, std::size_t size) { pickle.append(bytes, size); }, nullptr, nullptr,
      nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();
  RecordWriter writer(path);
  writer.write(std::string(kPickle), pickle);
  writer.write("byteorder", "little");
  for (std::size_t i = 0; i < pickler.tensorData().size(); ++i) {
    const auto bytes = host_bytes(pickler.tensorData()[i]);
    writer.write("data/" + std::to_string(i),
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  writer.publish();
}

}  // namespace olmo::store
