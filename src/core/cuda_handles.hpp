// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tessera/core/device.hpp"

#include "core/cuda_check.hpp"
#include "core/limited_streams.hpp"

/// Owners of what the CUDA runtime hands out.
namespace tessera::cuda_backend {

/// Makes a GPU current for as long as it lives, and the former one again afterwards.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index) : index_(index) {
    cuda_check(cudaGetDevice(&former_), "reading the current GPU");
    if (former_ != index) cuda_check(cudaSetDevice(index), "choosing a GPU");
  }
  ~CurrentDevice() {
    if (former_ != index_) cudaSetDevice(former_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int index_;
  int former_ = 0;
};

/// Whether a pointer is to memory of a GPU.
inline bool is_on_gpu(const void* pointer) {
  cudaPointerAttributes attributes{};
  if (pointer == nullptr) return false;
  if (cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess) {
    return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  }
  cudaGetLastError();
  return false;
}

/// A stream that does not wait for the default one.
class OwnedStream {
 public:
  OwnedStream() : stream_(make_stream()) {}
  ~OwnedStream() { cudaStreamDestroy(stream_); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  cudaStream_t raw() const noexcept { return stream_; }
  operator Stream() const noexcept { return {stream_}; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { cuda_check(cudaEventCreate(&event_), "making an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) {
    cuda_check(cudaEventRecord(event_, stream), "recording an event");
  }
  void wait() { cuda_check(cudaEventSynchronize(event_), "waiting for the GPU"); }
  /// Both have happened.
  double microseconds_since(const Event& earlier) const {
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "reading a time");
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Work that was captured from a stream and can be launched as a whole.
class CapturedWork {
 public:
  CapturedWork() = default;
  /// Takes the graph over.
  explicit CapturedWork(cudaGraph_t graph) : CapturedWork() {
    graph_ = graph;
    cuda_check(cudaGraphInstantiate(&work_, graph, 0), "preparing captured work");
  }
  ~CapturedWork() {
    if (work_ != nullptr) cudaGraphExecDestroy(work_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;

  /// Kernels, copies and fills.
  std::int64_t size() const {
    std::size_t count = 0;
    cuda_check(cudaGraphGetNodes(graph_, nullptr, &count), "counting captured work");
    return static_cast<std::int64_t>(count);
  }
  void launch(cudaStream_t stream) {
    cuda_check(cudaGraphLaunch(work_, stream), "launching captured work");
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t work_ = nullptr;
};

}  // namespace tessera::cuda_backend
