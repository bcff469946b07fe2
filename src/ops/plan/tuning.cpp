// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/tuning.hpp"

#include <string_view>

#include <fmt/format.h>

namespace tessera::ops {

DeviceRatio ratio_to(const Provenance& provenance, const DeviceTraits& traits) {
  DeviceRatio ratio;
  // Where a driver does not tell the bandwidth, that of the processors has to do.
  if (traits.processors > 0) {
    ratio.processors = static_cast<double>(traits.processors) / provenance.processors;
    ratio.memory = ratio.processors;
  }
  if (traits.memory_bytes_per_us > 0) {
    ratio.memory = traits.memory_bytes_per_us / provenance.memory_bytes_per_us;
  }
  return ratio;
}

std::string note_on_costs(const DeviceTraits& traits) {
  constexpr Provenance fitted = fitted_on_h200("", "");
  if (traits.compute_capability == fitted.compute_capability &&
      traits.processors == fitted.processors &&
      std::string_view(traits.name).starts_with(fitted.gpu)) {
    return {};
  }
  const DeviceRatio ratio = ratio_to(fitted, traits);
  return fmt::format(
      "costs of an {}, scaled to {:.2f} times its processors and {:.2f} times its bandwidth, until "
      "'tessera calibrate' fits them",
      fitted.gpu, ratio.processors, ratio.memory);
}

}  // namespace tessera::ops
