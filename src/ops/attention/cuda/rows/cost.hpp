// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/attention/cuda/rows/lane_shape.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

enum class AttentionSweep { forward, backward };

/// Whether lanes should hold two vectors where they can. They compute fewer scores twice, but are
/// fewer: large graphs have enough of them.
bool wants_two_vectors(const AttentionProblem& problem, AttentionSweep sweep);

/// Whether they should hold four in the forward pass, where values are what scores are made of.
bool wants_four_vectors(const AttentionProblem& problem);

/// How many neighbouring features a lane should load at most: 16 bytes, but 8 where a graph has so
/// few rows that a GPU has lanes to spare, so that each has less to do.
std::int64_t most_lane_features(const AttentionProblem& problem);

/// Which of the type's lane vectors a plan counts on: those of operands that lie on boundaries, in
/// the forward pass.
/// None where heads are too wide.
std::optional<LaneVectors> expected_lane_vectors(const AttentionProblem& problem);

/// Of the forward pass.
double predict_rows_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);

/// Of the backward pass, if the plan has one.
double predict_rows_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
