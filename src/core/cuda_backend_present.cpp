// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"
#include "core/cuda_check.hpp"
#include "core/cuda_handles.hpp"

namespace tessera::cuda_backend {
namespace {

cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

/// Memory from the GPU's own pool, in the order of the stream that asks: no call waits for the GPU.
class DeviceMemory final : public MemoryResource {
 public:
  explicit DeviceMemory(int index) : index_(index) {
    const CurrentDevice current(index);
    cudaMemPool_t pool = nullptr;
    cuda_check(cudaDeviceGetDefaultMemPool(&pool, index), "finding the memory pool");
    // Freed memory stays in the pool: giving it back to the driver after every step is slow.
    std::uint64_t keep = UINT64_MAX;
    cuda_check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
               "setting up the memory pool");
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    const CurrentDevice current(index_);
    void* memory = nullptr;
    const cudaError_t status = cudaMallocAsync(&memory, bytes, raw(stream));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t available = 0, total = 0;
      cudaMemGetInfo(&available, &total);
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("cannot allocate {:.3g} GiB: {:.3g} of {:.3g} GiB are free",
                              static_cast<double>(bytes) * 0x1p-30,
                              static_cast<double>(available) * 0x1p-30,
                              static_cast<double>(total) * 0x1p-30),
                  to_string(device()), "use a smaller graph or fewer features");
    }
    cuda_check(status, "allocating GPU memory");
    return memory;
  }

  void deallocate(void* memory, std::size_t, Stream stream) noexcept override {
    cudaFreeAsync(memory, raw(stream));
  }

  Device device() const noexcept override { return {DeviceKind::cuda, index_}; }

 private:
  int index_;
};

}  // namespace

bool present() noexcept { return true; }

int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

MemoryResource& memory(int index) {
  // Never destroyed: arrays in static storage may be freed after main ends.
  static auto* const memories = new std::vector<std::unique_ptr<DeviceMemory>>;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const auto slot = static_cast<std::size_t>(index);
  if (memories->size() <= slot) memories->resize(slot + 1);
  if (!(*memories)[slot]) (*memories)[slot] = std::make_unique<DeviceMemory>(index);
  return *(*memories)[slot];
}

void copy(void* to, const void* from, std::size_t bytes, Device device, Stream stream) {
  if (bytes == 0) return;
  const CurrentDevice current(device.index);
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, raw(stream)), "copying memory");
}

void fill_zero(void* memory, std::size_t bytes, Device device, Stream stream) {
  if (bytes == 0) return;
  const CurrentDevice current(device.index);
  cuda_check(cudaMemsetAsync(memory, 0, bytes, raw(stream)), "clearing memory");
}

void synchronise(Device device, Stream stream) {
  const CurrentDevice current(device.index);
  cuda_check(cudaStreamSynchronize(raw(stream)), "waiting for the GPU");
}

}  // namespace tessera::cuda_backend
