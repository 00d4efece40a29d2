// What libtorch_cuda.so and libtorch_hip.so register with LibTorch when they are loaded, for the
// emulated GPU: an allocator, the device guard with its stream, the hooks, and operations. Those
// are the CPU's, run on the memory of the device in the order of its queue.
#include "device.h"
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace olmo::fake {
namespace {

at::Device the_device() { return {at::kCUDA, static_cast<at::DeviceIndex>(device_of_thread())}; }

/// What every operation of LibTorch's does: an error that is known is thrown.
void check_device(int error) { TORCH_CHECK(error == 0, "CUDA error: ", text_of(error)); }

// ---- memory ----

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = bytes == 0 ? nullptr : fake::allocate(bytes);
    TORCH_CHECK_WITH(
        OutOfMemoryError, bytes == 0 || memory != nullptr, "CUDA out of memory. Tried to allocate ",
        bytes,
        " bytes. Process 7 has 1 GiB memory in use. If reserved but unallocated "
        "memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    return {memory, memory, raw_deleter(), the_device()};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override {
    return [](void* memory) {
      if (memory != nullptr) release(memory);
    };
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    submit([=] { std::memcpy(to, from, bytes); });
  }
};

// ---- device and stream ----

struct Guard final : c10::impl::DeviceGuardImplInterface {
  [[nodiscard]] c10::DeviceType type() const override { return at::kCUDA; }
  [[nodiscard]] c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = the_device();
    setDevice(device);
    return before;
  }
  [[nodiscard]] c10::Device getDevice() const override { return the_device(); }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    take_device(device.index());
  }
  [[nodiscard]] c10::Stream getStream(c10::Device) const override { return stream(); }
  [[nodiscard]] c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  [[nodiscard]] c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  [[nodiscard]] c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, the_device(), new_stream());
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(stream.id());  // NOLINT(performance-no-int-to-ptr): a name
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new std::int64_t;
    *static_cast<std::int64_t*>(*event) = fake::record(static_cast<int>(stream.id()));
  }
  void block(void* event, const c10::Stream& stream) const override {
    fake::block(static_cast<int>(stream.id()), *static_cast<std::int64_t*>(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<std::int64_t*>(event);
  }
  [[nodiscard]] c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(devices());
  }
  void synchronizeStream(const c10::Stream&) const override { synchronizeDevice(0); }
  void synchronizeDevice(const c10::DeviceIndex) const override { check_device(wait()); }

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, the_device()); }
};

struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  [[nodiscard]] bool hasCUDA() const override {
    const char* driver = std::getenv("FAKE_GPU_DRIVER");
    return devices() > 0 && (driver == nullptr || std::string_view(driver) != "old");
  }
  [[nodiscard]] bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  [[nodiscard]] at::DeviceIndex current_device() const override { return the_device().index(); }
  [[nodiscard]] int getNumGPUs() const override { return devices(); }
  [[nodiscard]] std::string showConfig() const override { return "emulated"; }
};

// ---- operations ----

using c10::IValue;
using Stack = torch::jit::Stack;

/// The same elements as a tensor of the CPU's, which the host may use while the device works.
at::Tensor on_host(const at::Tensor& t) {
  if (!t.defined() || !t.is_cuda()) return t;
  return at::from_blob(t.data_ptr(), t.sizes(), t.strides(), t.options().device(at::kCPU));
}

IValue on_host(const IValue& value) {
  if (value.isTensor()) return on_host(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(on_host(t));
    return list;
  }
  if (value.isDevice() && value.toDevice().is_cuda()) return at::Device(at::kCPU);
  return value;
}

at::Tensor on_device(const at::Tensor& t) {
  at::Tensor out = at::detail::empty_strided_generic(
      t.sizes(), t.strides(), c10::GetAllocator(at::kCUDA),
      c10::DispatchKeySet(c10::DispatchKey::CUDA), t.scalar_type());
  with_memory([&] { std::memcpy(out.data_ptr(), t.data_ptr(), out.storage().nbytes()); });
  return out;
}

void call_on_host(const c10::OperatorHandle& op, Stack& stack) {
  for (IValue& value : stack) value = on_host(value);
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.callBoxed(&stack);
}

/// True where the operation writes to its arguments and returns those, or nothing.
bool only_writes(const c10::FunctionSchema& schema) {
  return std::ranges::all_of(schema.returns(), [](const c10::Argument& returned) {
    return returned.alias_info() != nullptr && returned.alias_info()->isWrite();
  });
}

/// The arguments that the operation writes to: what it returns, in order.
std::vector<IValue> written(const c10::FunctionSchema& schema, const Stack& arguments) {
  std::vector<IValue> results;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) results.push_back(arguments[i]);
  }
  results.resize(schema.returns().size());
  return results;
}

void fallback(const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  const auto count = static_cast<std::ptrdiff_t>(schema.arguments().size());
  Stack arguments(stack->end() - count, stack->end());
  stack->erase(stack->end() - count, stack->end());
  check_device(known_error());
  if (only_writes(schema)) {
    const auto results = written(schema, arguments);
    stack->insert(stack->end(), results.begin(), results.end());
    submit([op, arguments] {
      Stack own = arguments;
      call_on_host(op, own);
    });
    return;
  }
  check_device(wait());
  with_memory([&] { call_on_host(op, arguments); });
  for (const IValue& result : arguments)
    stack->push_back(result.isTensor() ? IValue(on_device(result.toTensor())) : result);
}

void check_place(const std::optional<at::Device>& device) {
  TORCH_CHECK(!device || !device->has_index() || *device == the_device(),
              "a tensor of another GPU than the process uses");
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  check_place(device);
  return at::detail::empty_generic(sizes, c10::GetAllocator(at::kCUDA),
                                   c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  check_place(device);
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(at::kCUDA),
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           type.value_or(at::kFloat));
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  const auto move = [](const at::Tensor& target, const at::Tensor& source) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    on_host(target).copy_(on_host(source));
  };
  check_device(known_error());
  if (to.is_cuda()) {
    const at::Tensor source = from.is_cuda() ? from : from.clone();  // as a driver stages it
    submit([=] { move(to, source); });
    return to;
  }
  check_device(wait());
  with_memory([&] { move(to, from); });
  return to;
}

/// The products that a GPU alone has: of bf16, with sums that stay in fp32.
void check_widening(const at::Tensor& a, const at::Tensor& b, at::ScalarType type,
                    const at::Tensor& out) {
  TORCH_CHECK(a.scalar_type() == at::kBFloat16 && b.scalar_type() == at::kBFloat16,
              "mat1 and mat2 must be bf16 here");
  TORCH_CHECK(type == at::kFloat && out.scalar_type() == type, "out must have out_dtype");
}

at::Tensor& widening_mm(const at::Tensor& a, const at::Tensor& b, at::ScalarType type,
                        at::Tensor& out) {
  check_widening(a, b, type, out);
  check_device(known_error());
  submit([=] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    on_host(out).copy_(at::mm(on_host(a).to(type), on_host(b).to(type)));
  });
  return out;
}

at::Tensor& widening_addmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                           at::ScalarType type, const at::Scalar& beta, const at::Scalar& alpha,
                           at::Tensor& out) {
  check_widening(a, b, type, out);
  TORCH_CHECK(self.scalar_type() == type, "self must have out_dtype");
  check_device(known_error());
  submit([=] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    on_host(out).copy_(
        at::addmm(on_host(self), on_host(a).to(type), on_host(b).to(type), beta, alpha));
  });
  return out;
}

/// What the flash kernels of a GPU demand of a tensor (batch, heads, length, head_dim).
void check_flash(const at::Tensor& t) {
  TORCH_CHECK(t.is_cuda() && t.scalar_type() == at::kBFloat16, "flash attention wants bf16");
  TORCH_CHECK(t.size(3) % 8 == 0 && t.size(3) <= 256, "flash attention has no such head_dim");
  TORCH_CHECK(t.stride(3) == 1, "flash attention wants dense rows");
  TORCH_CHECK(at::globalContext().deterministicAlgorithms(), "its gradients would vary");
}

using FlashResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
                               c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

FlashResult flash_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double dropout, bool causal, bool, std::optional<double> scale) {
  for (const at::Tensor& t : {q, k, v}) check_flash(t);
  check_device(wait());
  at::Tensor out, lse;
  with_memory([&] {
    std::tie(out, lse) = at::_scaled_dot_product_flash_attention_for_cpu(
        on_host(q), on_host(k), on_host(v), dropout, causal, {}, scale);
  });
  return {on_device(out), on_device(lse), {}, {}, q.size(2), k.size(2), {}, {}, {}};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& lse, const at::Tensor& ends_q,
    const at::Tensor& ends_k, c10::SymInt length_q, c10::SymInt length_k, double dropout,
    bool causal, const at::Tensor& seed, const at::Tensor& offset, std::optional<double> scale) {
  for (const at::Tensor& t : {dout, q, k, v, out}) check_flash(t);
  TORCH_CHECK(!ends_q.defined() && !ends_k.defined() && seed.is_cuda() && offset.is_cuda());
  TORCH_CHECK(length_q == q.size(2) && length_k == k.size(2));
  check_device(wait());
  at::Tensor dq, dk, dv;
  with_memory([&] {
    std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        on_host(dout), on_host(q), on_host(k), on_host(v), on_host(out), on_host(lse), dropout,
        causal, {}, scale);
  });
  return {on_device(dq), on_device(dk), on_device(dv)};
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_scaled_dot_product_flash_attention", &flash_attention);
  library.impl("_scaled_dot_product_flash_attention_backward", &flash_attention_backward);
  library.impl("mm.dtype_out", &widening_mm);
  library.impl("addmm.dtype_out", &widening_addmm);
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("copy_", &copy);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

Allocator allocator;
const Guard guard;
const bool kRegistered = [] {
  c10::SetAllocator(at::kCUDA, &allocator);
  c10::impl::device_guard_impl_registry[static_cast<std::size_t>(at::kCUDA)].store(&guard);
  return true;
}();

}  // namespace
}  // namespace olmo::fake

namespace at {
using olmo::fake::CUDAHooks;
REGISTER_CUDA_HOOKS(CUDAHooks);
}  // namespace at
