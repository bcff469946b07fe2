// SPDX-License-Identifier: Apache-2.0
#include "ops/cost_shape.hpp"

#include <fmt/format.h>

namespace tessera::ops {

namespace {

thread_local int built_in_scopes = 0;

}  // namespace

BuiltInCosts::BuiltInCosts() { ++built_in_scopes; }
BuiltInCosts::~BuiltInCosts() { --built_in_scopes; }
bool BuiltInCosts::active() noexcept { return built_in_scopes > 0; }

double corrected_us(const Calibration* calibration, const KernelInfo& info, const CostShape& shape,
                    double predicted_us) {
  if (calibration == nullptr) return predicted_us;
  const KernelCorrection* const found = calibration->find(info.name, shape.element_bytes);
  return found == nullptr ? predicted_us : predicted_us * found->factor(shape, predicted_us);
}

std::string note_on_unused_calibration(Device device) {
  if (BuiltInCosts::active()) return {};
  const FoundCalibration found = find_calibration(device);
  return found.why_not.empty() ? "" : "no calibration: " + found.why_not;
}

std::string note_on_calibration(Device device, const std::string& kernel) {
  const auto calibration = calibration_for(device);
  if (calibration == nullptr) return {};
  if (calibration->find(kernel, 4) == nullptr && calibration->find(kernel, 2) == nullptr &&
      calibration->find(kernel, 8) == nullptr) {
    return {};
  }
  return fmt::format("costs calibrated on {} ({}; choices lose {:.1f} % in the mean)",
                     calibration->device, calibration->date,
                     100 * (calibration->fitted.mean_regret - 1));
}

}  // namespace tessera::ops
