// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/tuning.hpp"

#include <fmt/format.h>

#include "core/device_rates.hpp"
#include "ops/plan/measured_profile.hpp"

namespace tessera::ops {

DeviceRatio ratio_to_h200(const DeviceTraits& traits) {
  constexpr double row_bytes = 512;
  static const DeviceProfile& h200 = built_in_profile("h200");
  const DeviceProfile& gpu = profile_of(traits);
  return {rate_of(gpu.l2_gather, row_bytes) / rate_of(h200.l2_gather, row_bytes),
          gpu.copy_bytes_per_us / h200.copy_bytes_per_us,
          static_cast<double>(gpu.l1_bytes_per_processor) /
              static_cast<double>(h200.l1_bytes_per_processor),
          static_cast<double>(gpu.l2_bytes) / static_cast<double>(h200.l2_bytes)};
}

std::string note_on_costs(const DeviceTraits& traits) {
  const DeviceRatio ratio = ratio_to_h200(traits);
  const std::string_view fitted = fitted_on_h200("", "").gpu;
  if (traits.name.starts_with(fitted) && ratio.processors == 1 && ratio.memory == 1) return {};
  return fmt::format(
      "costs of an {}, scaled to {:.2f} times its caches and {:.2f} times its memory, until "
      "'tessera calibrate' measures this GPU",
      fitted, ratio.processors, ratio.memory);
}

}  // namespace tessera::ops
