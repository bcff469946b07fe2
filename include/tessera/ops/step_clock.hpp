// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"

namespace tessera::ops {

/// What changes from one training step to the next. It lies in memory of the device that trains, so
/// that a recorded step (core/recording.hpp) finds new numbers at every replay.
struct StepClock {
  std::int64_t step = 0;   ///< steps done so far
  double rate_factor = 1;  ///< what the learning rate is multiplied by
};

/// One more step is done.
void advance(StepClock* clock, Device device = {}, Stream stream = {});

}  // namespace tessera::ops
