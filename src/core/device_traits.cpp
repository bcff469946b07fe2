// SPDX-License-Identifier: Apache-2.0
#include "core/device_traits.hpp"

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "core/absent_gpu.hpp"
#include "core/cuda_backend.hpp"

namespace tessera {
namespace {

/// From the data sheets of NVIDIA. What a driver reports differs: it knows a clock and the width of
/// a bus, but not always how often a cycle transfers.
struct StatedBandwidth {
  const char* name;  ///< how the names of such GPUs begin
  int compute_capability;
  double memory_bytes_per_us;
};

constexpr std::array<StatedBandwidth, 9> stated_bandwidths = {{
    {"NVIDIA H200", 90, 4.8e6},
    {"NVIDIA H100 80GB HBM3", 90, 3.35e6},
    {"NVIDIA H100 PCIe", 90, 2.0e6},
    {"NVIDIA H100 NVL", 90, 3.9e6},
    {"NVIDIA GH200 480GB", 90, 4.0e6},
    {"NVIDIA A100-SXM4-40GB", 80, 1.555e6},
    {"NVIDIA A100-SXM4-80GB", 80, 2.039e6},
    {"NVIDIA A100 80GB PCIe", 80, 1.935e6},
    {"NVIDIA GeForce RTX 5090", 120, 1.792e6},
}};

}  // namespace

double stated_memory_bytes_per_us(const std::string& name, int compute_capability) {
  for (const StatedBandwidth& stated : stated_bandwidths) {
    if (stated.compute_capability == compute_capability && name.starts_with(stated.name)) {
      return stated.memory_bytes_per_us;
    }
  }
  return 0;
}

const DeviceTraits& device_traits(Device device) {
  if (const AbsentGpu* const absent = AbsentGpu::current()) return absent->traits();
  static std::mutex mutex;
  static std::map<int, DeviceTraits> known;  // never loses an entry, so that references stay valid
  const std::scoped_lock lock(mutex);
  const auto found = known.find(device.index);
  if (found != known.end()) return found->second;
  require_available(device);
  DeviceTraits traits = cuda_backend::traits(device.index);
  const double stated = stated_memory_bytes_per_us(traits.name, traits.compute_capability);
  if (stated > 0) traits.memory_bytes_per_us = stated;
  return known[device.index] = std::move(traits);
}

const DeviceTraits& h200_traits() {
  static const DeviceTraits traits = {"NVIDIA H200", 90, 132, 1980, 4.8e6, 60 << 20, 228 << 10};
  return traits;
}

}  // namespace tessera
