// SPDX-License-Identifier: Apache-2.0
#include "cuda/wgmma_device.hpp"

#include <map>
#include <mutex>

#include "core/absent_gpu.hpp"
#include "core/cuda_handles.hpp"
#include "core/gpu_limits.hpp"
#include "cuda/wgmma.cuh"

namespace tessera::cuda {
namespace {

/// Compiled as all other kernels: code for a neighbouring architecture has no wgmma. Its shared
/// memory tells, so that nobody has to run it.
__global__ void compiled_with_wgmma() {
#ifdef TESSERA_HAS_WGMMA
  __shared__ volatile int present;
  present = 1;
#endif
}

bool ask(Device device) {
  if (device.index >= num_gpus() || gpu_limits().no_wgmma) return false;
  const cuda_backend::CurrentDevice current(device.index);
  int major = 0;
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index),
             "reading the compute capability");
  if (major != 9) return false;
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, compiled_with_wgmma),
             "asking what kernels were compiled for");
  return attributes.sharedSizeBytes > 0;
}

}  // namespace

bool has_wgmma(Device device) {
  if (const AbsentGpu* const absent = AbsentGpu::current()) {
    return absent->profile().wgmma_bf16_per_us > 0;
  }
  static std::mutex mutex;
  static std::map<int, bool> answers;
  const std::lock_guard lock(mutex);
  const auto known = answers.find(device.index);
  if (known != answers.end()) return known->second;
  return answers[device.index] = ask(device);
}

}  // namespace tessera::cuda
