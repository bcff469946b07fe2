// SPDX-License-Identifier: Apache-2.0
#include "conformance/cuda/allocation_hook.hpp"

#include <cuda_runtime_api.h>

#include <atomic>

namespace {
std::atomic<std::int64_t> allocations{0};
}

namespace tessera::test {
std::int64_t num_cuda_allocations() noexcept { return allocations.load(); }
}  // namespace tessera::test

// With `--wrap=f` the linker takes `__wrap_f` for every `f`, and `f` for `__real_f`.
extern "C" {

cudaError_t __real_cudaMalloc(void**, size_t);
cudaError_t __wrap_cudaMalloc(void** memory, size_t bytes) {
  ++allocations;
  return __real_cudaMalloc(memory, bytes);
}

cudaError_t __real_cudaMallocManaged(void**, size_t, unsigned int);
cudaError_t __wrap_cudaMallocManaged(void** memory, size_t bytes, unsigned int flags) {
  ++allocations;
  return __real_cudaMallocManaged(memory, bytes, flags);
}

cudaError_t __real_cudaMallocAsync(void**, size_t, cudaStream_t);
cudaError_t __wrap_cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  ++allocations;
  return __real_cudaMallocAsync(memory, bytes, stream);
}

cudaError_t __real_cudaMallocFromPoolAsync(void**, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t __wrap_cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  ++allocations;
  return __real_cudaMallocFromPoolAsync(memory, bytes, pool, stream);
}

cudaError_t __real_cudaHostAlloc(void**, size_t, unsigned int);
cudaError_t __wrap_cudaHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  ++allocations;
  return __real_cudaHostAlloc(memory, bytes, flags);
}

cudaError_t __real_cudaMallocHost(void**, size_t);
cudaError_t __wrap_cudaMallocHost(void** memory, size_t bytes) {
  ++allocations;
  return __real_cudaMallocHost(memory, bytes);
}

}  // extern "C"
