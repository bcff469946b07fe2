// SPDX-License-Identifier: Apache-2.0
#include "cuda/workspace.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <utility>

#include "core/cuda_check.hpp"
#include "core/cuda_handles.hpp"
#include "cuda/stream_capture.hpp"

namespace tessera::cuda {
namespace {

/// Zeros that are there when the call returns.
void* zeroed(std::size_t bytes) {
  const OutsideCapture outside;
  void* memory = nullptr;
  cuda_check(cudaMalloc(&memory, bytes), "allocating a workspace");
  const cuda_backend::OwnedStream stream;
  cuda_check(cudaMemsetAsync(memory, 0, bytes, stream.raw()), "clearing a workspace");
  cuda_check(cudaStreamSynchronize(stream.raw()), "clearing a workspace");
  return memory;
}

/// One array for each stream that asks. Never freed: streams that live long are few.
class PerStream {
 public:
  explicit PerStream(std::size_t bytes) : bytes_(bytes) {}

  void* get(Device device, Stream stream) {
    const std::scoped_lock lock(mutex_);
    void*& memory = arrays_[{device.index, stream.handle}];
    if (memory == nullptr) {
      const cuda_backend::CurrentDevice current(device.index);
      memory = zeroed(bytes_);
    }
    return memory;
  }

 private:
  std::size_t bytes_;
  std::mutex mutex_;
  std::map<std::pair<int, void*>, void*> arrays_;
};

constexpr std::size_t partials_bytes = workspace_partials * sizeof(double);
constexpr std::size_t columns_bytes = workspace_columns * sizeof(ColumnNumbers);
constexpr std::size_t counters_bytes = workspace_counters * sizeof(unsigned);

}  // namespace

Workspace workspace(Device device, Stream stream) {
  static auto* const all = new PerStream(partials_bytes + columns_bytes + counters_bytes);
  auto* const memory = static_cast<std::byte*>(all->get(device, stream));
  return {reinterpret_cast<unsigned*>(memory + partials_bytes + columns_bytes),
          reinterpret_cast<double*>(memory),
          reinterpret_cast<ColumnNumbers*>(memory + partials_bytes)};
}

std::unique_lock<std::mutex> between_launches() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

void* blas_workspace(Device device, Stream stream) {
  static auto* const all = new PerStream(blas_workspace_bytes);
  return all->get(device, stream);
}

}  // namespace tessera::cuda
