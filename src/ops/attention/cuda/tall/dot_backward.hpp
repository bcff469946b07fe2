// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/cuda/tall/windows.hpp"

namespace tessera::ops {

/// Gives a kernel of dot products over windows of 64 rows its backward pass, if there is one for
/// these options: not in fp16.
void set_dot_gradient(const AttentionOptions& options, WindowKernel& kernel);

/// What that should take, or else the one by rows.
double predict_dot_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
