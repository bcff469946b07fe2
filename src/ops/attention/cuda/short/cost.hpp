// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// What the forward pass should take on windows of 16 rows.
double predict_short_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
/// What both sweeps back should take there.
double predict_short_dot_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_short_gat_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
