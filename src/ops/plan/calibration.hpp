// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tessera/ops/calibration.hpp"
#include "tessera/ops/kernels.hpp"

namespace tessera::ops {

/// What a regression multiplies its coefficients by.
inline std::array<double, 4> cost_terms(const CostShape& shape, double predicted_us) {
  return {1, std::log2(std::max(shape.mean_degree, 0.25)) - 3,
          std::log2(std::max(shape.row_bytes, 4.0)) - 8,
          std::log2(std::max(predicted_us, 0.1)) - 5};
}

/// The name by which a calibration knows a device.
std::string calibrated_device(Device device);

/// A prediction as a calibration corrects it; the same where it is null or does not have the
/// kernel.
double corrected_us(const Calibration* calibration, const std::string& kernel,
                    const CostShape& shape, double predicted_us);

/// While one of these lives, plans of this thread use the built-in costs alone.
class BuiltInCosts {
 public:
  BuiltInCosts();
  ~BuiltInCosts();
  BuiltInCosts(const BuiltInCosts&) = delete;
  BuiltInCosts& operator=(const BuiltInCosts&) = delete;

  static bool active() noexcept;
};

/// What an explanation says where there is a calibration that is not used; empty where there is
/// none, or it is used.
std::string note_on_unused_calibration(Device device);

/// What an explanation says of costs that a calibration corrected; empty where none of these
/// kernels has a correction.
std::string note_on_calibration(Device device, const std::string& kernel);

}  // namespace tessera::ops
