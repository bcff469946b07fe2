// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/train/options.hpp"

namespace tessera::train {

/// What the learning rate is multiplied by in an epoch, from 0; a plateau has been left behind
/// `plateaus` times.
double rate_factor(const TrainOptions& options, std::int64_t epoch, std::int64_t plateaus);

/// Throws `invalid_argument` where the options of the schedule do not go together.
void validate_schedule(const TrainOptions& options);

}  // namespace tessera::train
