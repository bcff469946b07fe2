// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensors.hpp"
#include "tessera/core/memory.hpp"

/// Where the operators of this library run: one library for the CPU, one for CUDA, with the same
/// operators. place_cpu.cpp and place_cuda.cpp are the difference.
namespace tessera::torch_ops {

/// The device of a tensor, torch's memory there, and torch's current stream.
Place place_of(const Tensor& tensor);
/// Whether the stream's work is being captured into a CUDA graph.
bool is_capturing(const Place& place);
/// Waits for all work on the device; where a capture forbids that, for nothing.
void wait_for(Device device) noexcept;

/// How much memory a device has in all; of the CPU, how much this process may use of it.
std::int64_t memory_of_device(int index);
/// Gives back to the system what was freed and is kept for the next request.
void release_free_memory() noexcept;

/// Makes the device of a tensor the current one.
class DeviceScope {
 public:
  explicit DeviceScope(const Tensor& tensor);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  void* guard_ = nullptr;
};

}  // namespace tessera::torch_ops
