#include "store/foreign/torch_file.h"

#include <exception>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include "core/error.h"
#include "core/files/output_file.h"

namespace olmo::store {
namespace {

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
    : TensorFile(path), archive_(map(), {0, map().bytes().size()}) {
  if (root().kind != PickleValue::Kind::kDict)
    throw Error(ErrorKind::kInput, path.string() + ": the pickle holds no dict");
  set_entries(archive_.tensors());
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
  writer.write("data.pkl", pickle);
  writer.write("byteorder", "little");
  for (std::size_t i = 0; i < pickler.tensorData().size(); ++i) {
    const auto bytes = host_bytes(pickler.tensorData()[i]);
    writer.write("data/" + std::to_string(i),
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  writer.publish();
}

}  // namespace olmo::store
