// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/core/device.hpp"
#include "tessera/core/device_profile.hpp"
#include "tessera/core/progress.hpp"

/// Measuring what a GPU can do. Plans expect by what was measured where they find it, and else by
/// the nearest built-in profile, scaled by what the driver tells.
namespace tessera::ops {

struct CalibrationOptions {
  Device device = {DeviceKind::cuda, 0};
  std::string date;  ///< noted
  Progress progress = {};
};

/// Measures the profile of a GPU, which takes less than a minute: how fast it gathers rows of each
/// length from each cache and from memory, copies, adds atomically, multiplies and starts kernels,
/// and how long a load takes. What cannot be measured is as the driver tells, or as the nearest
/// built-in profile has it. Other work on the GPU disturbs it.
DeviceProfile calibrate(const CalibrationOptions& options);

/// Where plans look for the profile of a GPU: TESSERA_DEVICE_PROFILE names a file ("off": none),
/// else it is in the user's data folder ($XDG_DATA_HOME/tessera, or ~/.local/share/tessera). Empty:
/// nowhere.
std::string measured_profile_path(Device device);

struct ExpectedProfile {
  DeviceProfile profile;  ///< by which plans expect
  bool measured = false;
  /// Of a file that is there, or that TESSERA_DEVICE_PROFILE names: why plans do not use it. It is
  /// of another GPU, driver or build, or not there.
  std::string why_not;
};

/// Read at the first call for a GPU, and the same from then on. Throws `bad_data` for a file that
/// is damaged.
ExpectedProfile expected_profile(Device device);

}  // namespace tessera::ops
