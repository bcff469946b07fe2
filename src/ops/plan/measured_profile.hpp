// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/device_traits.hpp"
#include "tessera/ops/calibration.hpp"

namespace tessera::ops {

/// The profile by which costs of a GPU with these traits expect: that of an absent GPU for which
/// this thread plans, else what was measured here of such a GPU, else the nearest one built in,
/// scaled. Valid until this thread asks about other traits.
const DeviceProfile& profile_of(const DeviceTraits& traits);

/// What is at the path for a GPU of which this is expected, with this driver.
ExpectedProfile read_measured_profile(const std::string& path, const DeviceProfile& expected,
                                      const std::string& driver);

/// Throws `invalid_argument` for a CPU, `backend_unavailable` for a GPU that is not there.
void require_a_gpu(Device device);

/// How the driver of the GPUs calls its version; empty in a build without CUDA.
std::string driver_of_gpus();

/// Tessera's version and that of the CUDA that it was built with.
std::string this_build();

}  // namespace tessera::ops
