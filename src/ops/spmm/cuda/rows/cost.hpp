// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/rows/cut.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Lanes that one row of X keeps busy: `lane_bytes` each, or a feature each where rows are not on
/// boundaries of that size.
std::int64_t lanes_wanted(const SpmmProblem& problem, int lane_bytes);

/// How a policy shares the rows of a problem.
RowsCut rows_cut(const SpmmProblem& problem, const RowsPolicy& policy, const DeviceTraits& traits);

/// What the row kernel of a policy should take, from the degrees of the rows.
double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy,
                         const DeviceTraits& traits);

}  // namespace tessera::ops
