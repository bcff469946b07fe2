// SPDX-License-Identifier: Apache-2.0
#include "cuda/wgmma_device.hpp"

#include <map>
#include <mutex>

#include "cuda/launch.cuh"
#include "cuda/wgmma.cuh"
#include "tessera/core/memory.hpp"

namespace tessera::cuda {
namespace {

/// What was compiled for the GPU that runs it: code for a neighbouring architecture has no wgmma.
__global__ void report_wgmma(int* answer) {
#ifdef TESSERA_HAS_WGMMA
  *answer = 1;
#else
  *answer = 0;
#endif
}

bool ask(Device device) {
  if (device.index >= num_gpus()) return false;
  int major = 0;
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index),
             "reading the compute capability");
  if (major != 9) return false;
  Buffer<int> answer(1, default_memory(device));
  launch(report_wgmma, dim3(1), 1, Stream{}, answer.data());
  int copy = 0;
  copy_bytes(&copy, answer.data(), sizeof(copy), device);
  synchronise(device);
  return copy == 1;
}

}  // namespace

bool has_wgmma(Device device) {
  static std::mutex mutex;
  static std::map<int, bool> answers;
  const std::lock_guard lock(mutex);
  const auto known = answers.find(device.index);
  if (known != answers.end()) return known->second;
  return answers[device.index] = ask(device);
}

}  // namespace tessera::cuda
