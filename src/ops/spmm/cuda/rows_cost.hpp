// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/policy.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Lanes that one row of X keeps busy: 16 bytes each, or a feature each where rows are not on
/// 16-byte boundaries.
std::int64_t lanes_wanted(const SpmmProblem& problem);

/// What the row kernel of a policy should take, from the degrees of the rows.
double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy);

}  // namespace tessera::ops
