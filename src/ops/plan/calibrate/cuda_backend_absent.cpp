// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/measured_profile.hpp"
#include "tessera/core/version.hpp"

namespace tessera::ops {

DeviceProfile calibrate(const CalibrationOptions& options) {
  require_a_gpu(options.device);  // throws: there is none
  return {};
}

std::string driver_of_gpus() { return {}; }
std::string this_build() { return version(); }

}  // namespace tessera::ops
