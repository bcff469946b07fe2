// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/device.hpp"

namespace tessera {

/// What a GPU is, as far as schedules and cost models ask.
struct DeviceTraits {
  std::string name;            ///< "NVIDIA H200"
  int compute_capability = 0;  ///< 90 for 9.0
  int processors = 0;          ///< streaming multiprocessors
  double clock_mhz = 0;        ///< the highest that processors reach
  double memory_bytes_per_us = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t shared_bytes_per_processor = 0;
};

/// The traits of a GPU of this machine, read once from its properties. Throws
/// `backend_unavailable` where there is none.
const DeviceTraits& device_traits(Device device);

/// The bandwidth that the maker states for a GPU's memory; 0 for one that the table does not have.
double stated_memory_bytes_per_us(const std::string& name, int compute_capability);

/// The traits of the GPU that most coefficients were fitted on, for predictions on machines without
/// one.
const DeviceTraits& h200_traits();

}  // namespace tessera
