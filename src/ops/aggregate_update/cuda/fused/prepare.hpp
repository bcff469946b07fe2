// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/aggregate_update/cuda/fused/launch.hpp"
#include "ops/aggregate_update/kernel.hpp"

/// What kernels that multiply sums where they are have in common.
namespace tessera::ops {

/// The narrowest of `update_widths` that holds the columns; 0: none.
int update_width(std::int64_t cols);

/// The operands of a run, without work, matrix and scales of rows.
UpdateLaunch update_operands(const AggregateUpdateProblem& problem,
                             const AggregateUpdateCall& call);

/// Why sums cannot be multiplied where they are on any GPU, in words; empty if they can.
std::string why_not_update(const AggregateUpdateProblem& problem);

/// Sums row by row. `listed`: rows in an order that suits them, which takes memory; without, for
/// runs that are few.
std::unique_ptr<const PreparedAggregateUpdate> prepare_fused_update(
    const AggregateUpdateProblem& problem, bool listed);

}  // namespace tessera::ops
