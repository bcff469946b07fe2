// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/dense_workspace.hpp"

#include <string>

#include "tessera/core/error.hpp"

#ifdef TESSERA_WITH_CUDA
#include "core/cuda_handles.hpp"
#include "cuda/workspace.hpp"
#include "ops/dense/cuda/blas_handle.hpp"
#endif

namespace tessera::ops {
namespace {

#ifdef TESSERA_WITH_CUDA
bool is_captured(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.handle), &status),
             "asking whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}
#endif

}  // namespace

std::int64_t DenseWorkspace::num_bytes([[maybe_unused]] Device device) noexcept {
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return cuda::workspace_bytes;
#endif
  return 0;
}

DenseWorkspace::DenseWorkspace(const Place& place) {
  require_available(place.device);
  const auto state = std::make_shared<State>(place);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    // Makes the GPU's handle, if there is none yet, while memory may be taken.
    const BlasCall made(place.device);
    // They are 0 between calls; the rest is written before it is read.
    unsigned* const counters = cuda::workspace_in(state->memory.data()).counters;
    fill_zero(counters, cuda::workspace_counters * sizeof(unsigned), place.device, place.stream);
    // Where the stream is captured, every replay begins with that.
    if (!is_captured(place.stream)) synchronise(place.device, place.stream);
  }
#endif
  state_ = state;
}

Device DenseWorkspace::device() const noexcept { return state_->place.device; }

DenseWorkspaceUse::DenseWorkspaceUse(const DenseWorkspace* workspace, const char* op, Device device,
                                     Stream stream)
    : stream_(stream) {
  if (workspace == nullptr) {
    throw Error(ErrorCode::invalid_argument, std::string(op) + " on a GPU has no workspace",
                "workspace", "make a DenseWorkspace once and pass it to each call");
  }
  if (workspace->device() != device) {
    throw Error(ErrorCode::invalid_argument,
                std::string(op) + " on " + to_string(device) + " has a workspace of " +
                    to_string(workspace->device()),
                "workspace", "make a DenseWorkspace for each GPU");
  }
  state_ = &workspace->state();
}

}  // namespace tessera::ops
