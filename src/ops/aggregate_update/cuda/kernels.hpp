// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "ops/aggregate_update/cuda/fused/launch.hpp"
#include "ops/aggregate_update/kernel.hpp"

/// The CUDA kernels of aggregate_update, and what those that multiply sums where they are have in
/// common.
namespace tessera::ops {

void append_cuda_fused_aggregate_update(std::vector<AggregateUpdateKernel>& table);
void append_cuda_window_aggregate_update(std::vector<AggregateUpdateKernel>& table);

/// The narrowest that holds so many columns; 0: none.
template <std::size_t count>
int narrowest(const int (&widths)[count], std::int64_t columns) {
  const int* const found = std::lower_bound(std::begin(widths), std::end(widths), columns);
  return found == std::end(widths) ? 0 : *found;
}
inline int update_width(std::int64_t cols) { return narrowest(update_widths, cols); }

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
