// SPDX-License-Identifier: Apache-2.0
#include "conformance/cuda/allocation_hook.hpp"

#include <cuda_runtime_api.h>

#include <atomic>

namespace {
std::atomic<std::int64_t> allocations{0}, pinned{0}, waits{0}, largest_to_host{0};

/// What a pointer leads to, as far as copies care.
cudaMemoryType kind_of(const void* pointer) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess) return attributes.type;
  cudaGetLastError();
  return cudaMemoryTypeUnregistered;
}

bool is_of_gpu(cudaMemoryType kind) {
  return kind == cudaMemoryTypeDevice || kind == cudaMemoryTypeManaged;
}

/// A copy from a GPU to ordinary memory of this process has ended when the call returns.
void note_copy(const void* to, const void* from, size_t bytes) {
  const cudaMemoryType target = kind_of(to);
  if (is_of_gpu(target) || !is_of_gpu(kind_of(from))) return;
  if (target == cudaMemoryTypeUnregistered) ++waits;
  const auto size = static_cast<std::int64_t>(bytes);
  if (size > largest_to_host) largest_to_host = size;
}

}  // namespace

namespace tessera::test {
std::int64_t num_cuda_allocations() noexcept { return allocations.load(); }
std::int64_t num_pinned_allocations() noexcept { return pinned.load(); }
std::int64_t num_cuda_waits() noexcept { return waits.load(); }
std::int64_t largest_copy_to_host() noexcept { return largest_to_host.exchange(0); }
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
  ++pinned;
  return __real_cudaHostAlloc(memory, bytes, flags);
}

cudaError_t __real_cudaMallocHost(void**, size_t);
cudaError_t __wrap_cudaMallocHost(void** memory, size_t bytes) {
  ++pinned;
  return __real_cudaMallocHost(memory, bytes);
}

cudaError_t __real_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  ++waits;
  return __real_cudaStreamSynchronize(stream);
}

cudaError_t __real_cudaEventSynchronize(cudaEvent_t);
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t event) {
  ++waits;
  return __real_cudaEventSynchronize(event);
}

cudaError_t __real_cudaDeviceSynchronize();
cudaError_t __wrap_cudaDeviceSynchronize() {
  ++waits;
  return __real_cudaDeviceSynchronize();
}

cudaError_t __real_cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t __wrap_cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  ++waits;
  note_copy(to, from, bytes);
  return __real_cudaMemcpy(to, from, bytes, kind);
}

cudaError_t __real_cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  note_copy(to, from, bytes);
  return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}

}  // extern "C"
