// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// Times of GATv2 by pairs of rows.
double predict_pairs_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_pairs_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
