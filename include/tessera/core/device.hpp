// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

enum class DeviceKind { cpu, cuda };

/// Where memory lies and work runs.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu" or "cuda:0".
std::string to_string(Device device);

/// Reads "cpu", "cuda" or "cuda:N"; anything else is an `invalid_argument` error.
Device parse_device(const std::string& text);

/// A queue of work on a device, owned by the caller. On the GPU the handle is a `cudaStream_t`; the
/// CPU has no queue and ignores it. Kept opaque so that public headers need no CUDA.
struct Stream {
  void* handle = nullptr;
};

/// What the device is called: "NVIDIA H200", or "cpu, 16 threads".
std::string device_name(Device device);

/// True when the library was built with its CUDA backend.
bool built_with_cuda() noexcept;

/// GPUs that this process can use; 0 in a build without CUDA.
int num_gpus() noexcept;

/// Throws `backend_unavailable` unless work can run on this device.
void require_available(Device device);

/// Waits until all work queued on the stream is done. The CPU has nothing to wait for.
void synchronise(Device device, Stream stream = {});

}  // namespace tessera
