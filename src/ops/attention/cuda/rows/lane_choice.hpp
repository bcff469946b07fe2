// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/row_launch.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// Which of the type's lane vectors a plan counts on: those of operands that lie on boundaries, in
/// the forward pass.
LaneVectors expected_lane_vectors(const AttentionProblem& problem);

enum class AttentionSweep { forward, backward };

/// Which kernel of the type's list takes a run of a sweep with these operands: how wide its loads
/// may be, as they lie. Sets the shape and the size of the grid.
std::size_t choose_lanes(const AttentionProblem& problem, AttentionSweep sweep,
                         const AttentionInputs& inputs, std::initializer_list<ConstOperand> others,
                         RowsAttentionLaunch& launch);

}  // namespace tessera::ops
