// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// Numbers of all edges and heads.
double edge_numbers(const AttentionProblem& problem);

/// What dropping weights adds to the stages of the forward pass.
double predict_dropping_us(const AttentionProblem& problem, const DeviceTraits& traits);

/// What so many stages should take whose ops alone take `ops_us`.
double predict_stages_us(const AttentionProblem& problem, const DeviceTraits& traits, double ops_us,
                         int num_stages);

/// What copies of 16-bit operands in fp32, and back, should take.
double predict_widening_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
