// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "tessera/train/metrics.hpp"

namespace tessera::app {

/// "81.52 %" of a metric that is a share; of numbers the number, in the units of the data.
inline std::string metric_text(train::Metric metric, double value, int digits = 2) {
  if (train::is_of_numbers(metric)) return fmt::format("{:.4g}", value);
  return fmt::format("{:.{}f} %", value * 100, digits);
}

}  // namespace tessera::app
