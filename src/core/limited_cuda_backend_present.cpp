// SPDX-License-Identifier: Apache-2.0
#include "core/limited_streams.hpp"

#include <cuda.h>

#include <map>
#include <mutex>

#include "core/cuda_handles.hpp"
#include "core/gpu_limits.hpp"

namespace tessera::cuda_backend {
namespace {

/// A function of the driver, which the library does not link: machines without a GPU have none.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cuda_check(
      cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result),
      "looking for a function of the driver");
  if (result != cudaDriverEntryPointSuccess) {
    throw Error(ErrorCode::unsupported, std::string("the driver has no ") + name,
                "TESSERA_GPU_LIMITS", "update the driver, or unset processors");
  }
  return reinterpret_cast<Function>(found);
}

void driver_check(CUresult status, const char* doing) {
  if (status == CUDA_SUCCESS) return;
  throw Error(ErrorCode::internal,
              std::string("error ") + std::to_string(status) + " while " + doing, "CUDA");
}

struct GreenContext {
  CUgreenCtx handle = nullptr;
  int processors = 0;
};

GreenContext make_green_context(int index, int processors) {
  const CurrentDevice current(index);
  cuda_check(cudaFree(nullptr), "starting the GPU");  // makes the primary context
  CUdevResource all{}, part{}, rest{};
  driver_check(driver_function<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource")(
                   index, &all, CU_DEV_RESOURCE_TYPE_SM),
               "reading the processors of a GPU");
  unsigned groups = 1;
  driver_check(
      driver_function<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount")(
          &part, &groups, &all, &rest, 0, static_cast<unsigned>(processors)),
      "taking some processors of a GPU");
  CUdevResourceDesc description = nullptr;
  driver_check(driver_function<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc")(
                   &description, &part, 1),
               "describing some processors of a GPU");
  GreenContext made;
  driver_check(driver_function<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate")(
                   &made.handle, description, index, CU_GREEN_CTX_DEFAULT_STREAM),
               "making a green context");
  made.processors = static_cast<int>(part.sm.smCount);
  return made;
}

/// Never destroyed: streams of it may be used until the process ends.
const GreenContext& green_context(int index) {
  static std::mutex mutex;
  static auto& made = *new std::map<int, GreenContext>();
  const std::scoped_lock lock(mutex);
  const auto found = made.find(index);
  if (found != made.end()) return found->second;
  return made[index] = make_green_context(index, gpu_limits().processors);
}

}  // namespace

cudaStream_t make_stream(int priority) {
  cudaStream_t stream = nullptr;
  if (gpu_limits().processors == 0) {
    cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
               "making a stream");
    return stream;
  }
  int index = 0;
  cuda_check(cudaGetDevice(&index), "reading the current GPU");
  driver_check(driver_function<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate")(
                   &stream, green_context(index).handle, CU_STREAM_NON_BLOCKING, priority),
               "making a stream of a green context");
  return stream;
}

int usable_processors(int index, int all) {
  return gpu_limits().processors == 0 ? all : green_context(index).processors;
}

}  // namespace tessera::cuda_backend
