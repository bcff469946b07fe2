// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <cuda_runtime_api.h>

#include "copies.hpp"
#include "copy_parts.hpp"
#include "operators.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"

// Only libtorch_cuda has these. Declared weak, so that linking needs the CPU's libraries alone.
extern "C" {
__attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(std::int32_t, void**);
__attribute__((weak)) AOTITorchError aoti_torch_cuda_caching_allocator_raw_alloc(std::uint64_t,
                                                                                 void**);
__attribute__((weak)) AOTITorchError aoti_torch_cuda_caching_allocator_raw_delete(void*);
}

namespace tessera::torch_ops {
namespace {

void require_torch_cuda() {
  if (aoti_torch_get_current_cuda_stream != nullptr &&
      aoti_torch_cuda_caching_allocator_raw_alloc != nullptr) {
    return;
  }
  throw Error(ErrorCode::backend_unavailable, "this torch was built without CUDA", "torch",
              "install a torch for CUDA 13");
}

/// torch's caching allocator. It orders memory by the stream that was current when it was taken,
/// which is the stream of everything that the operators make.
class TorchMemory final : public MemoryResource {
 public:
  explicit TorchMemory(int index) : index_(index) {}

  void* allocate(std::size_t bytes, Stream) override {
    if (bytes == 0) return nullptr;
    void* memory = nullptr;
    if (aoti_torch_cuda_caching_allocator_raw_alloc(bytes, &memory) != 0 || memory == nullptr) {
      throw Error(ErrorCode::out_of_memory,
                  "torch has no " + std::to_string(bytes) + " bytes left on " + to_string(device()),
                  "memory", "use a smaller graph or fewer features");
    }
    return memory;
  }
  void deallocate(void* memory, std::size_t, Stream) noexcept override {
    if (memory != nullptr) aoti_torch_cuda_caching_allocator_raw_delete(memory);
  }
  Device device() const noexcept override { return {DeviceKind::cuda, index_}; }

 private:
  int index_;
};

/// Never destroyed: graphs in the cache may outlive main.
TorchMemory& memory_of(int index) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const memories = new std::vector<std::unique_ptr<TorchMemory>>;
  const std::scoped_lock lock(*mutex);
  while (static_cast<int>(memories->size()) <= index) {
    memories->push_back(std::make_unique<TorchMemory>(static_cast<int>(memories->size())));
  }
  return *(*memories)[static_cast<std::size_t>(index)];
}

/// Elements from which a copy is worth a launch of its own: the kernel of all copies moves the
/// features of 169,343 vertices at 1.4 TB/s on an H200.
constexpr std::int64_t large_copy = std::int64_t{1} << 18;

/// As the kernels of copies take it, where they can.
std::optional<ops::Operand> part_operand(const Tensor& tensor) {
  const ScalarType type = tensor.scalar_type();
  if (type != ScalarType::Float && type != ScalarType::BFloat16 && type != ScalarType::Half) {
    return std::nullopt;
  }
  if (tensor.dim() == 2) {
    return has_rows(tensor) ? std::optional(operand(tensor)) : std::nullopt;
  }
  return tensor.is_contiguous() ? std::optional(row_operand(tensor)) : std::nullopt;
}

}  // namespace

Place place_of(const Tensor& tensor) {
  require_torch_cuda();
  const Device device = device_of(tensor);
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device.index, &stream));
  return {device, &memory_of(device.index), Stream{stream}};
}

std::int64_t memory_of_device(int index) {
  cudaDeviceProp properties = {};
  const bool known = cudaGetDeviceProperties(&properties, index) == cudaSuccess;
  return known ? static_cast<std::int64_t>(properties.totalGlobalMem) : 0;
}

void release_free_memory() noexcept {}  // torch's allocator keeps it: torch.cuda.empty_cache()

bool is_capturing(const Place& place) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error =
      cudaStreamIsCapturing(static_cast<cudaStream_t>(place.stream.handle), &status);
  return error == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

void wait_for(Device device) noexcept {
  int current = 0;
  cudaGetDevice(&current);
  cudaSetDevice(device.index);
  if (cudaDeviceSynchronize() != cudaSuccess) cudaGetLastError();
  cudaSetDevice(current);
}

void make_all(const std::vector<Copy>& copies) {
  if (copies.empty()) return;
  const Place place = place_of(copies[0].into);
  std::vector<CopyPart> parts;
  for (const Copy& copy : copies) {
    const auto from = part_operand(copy.source), to = part_operand(copy.into);
    if (!from || !to) {
      make_one(copy);
    } else if (copy.diagonal == 0 && to->rows * to->cols >= large_copy) {
      ops::copy(*from, *to, place.device, place.stream);
    } else {
      parts.push_back({*from, *to, copy.diagonal});
    }
  }
  if (!parts.empty()) copy_parts(parts, place.stream);
}

DeviceScope::DeviceScope(const Tensor& tensor) {
  if (tensor.is_cpu()) {  // others lie on a GPU, or this library would not be asked
    throw Error(ErrorCode::invalid_argument, "features on cpu, while other tensors lie on a GPU",
                "device", "move them to one device, as by x.to(layer.weight.device)");
  }
  guard_ = new torch::stable::accelerator::DeviceGuard(tensor.get_device_index());
}
DeviceScope::~DeviceScope() {
  delete static_cast<torch::stable::accelerator::DeviceGuard*>(guard_);
}

}  // namespace tessera::torch_ops

STABLE_TORCH_LIBRARY_IMPL(tessera, CUDA, library) {
  tessera::torch_ops::register_operators(library);
}
