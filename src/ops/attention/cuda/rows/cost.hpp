// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/cuda/rows/lane_shape.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// Which of the type's lane vectors a plan counts on: those of operands that lie on boundaries.
/// None where heads are too wide.
std::optional<LaneVectors> expected_lane_vectors(const AttentionOptions& options);

double predict_rows_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
