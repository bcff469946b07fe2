// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/cuda/tall/windows.hpp"
#include "ops/attention/kernel.hpp"

/// The backward pass of GAT over windows of 64 rows, which every forward pass over them goes with.
namespace tessera::ops {

/// Gives `kernel` the backward pass, where there is one for the heads and precision of `options`.
void set_gat_gradient(const AttentionOptions& options, WindowKernel& kernel);

/// What the backward pass should take, by rows where windows have none.
double predict_gat_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
