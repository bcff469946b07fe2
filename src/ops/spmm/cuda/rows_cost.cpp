// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows_cost.hpp"

#include <algorithm>

#include "ops/spmm/cuda/schedule.hpp"

namespace tessera::ops {
namespace {

// Fitted to timings of all policies on 13 graphs, five widths and two precisions on an H200.
constexpr double launch_us = 8;
constexpr double warp_us = 1.28;  ///< a warp's start and end
constexpr double step_us = 0.17;  ///< one step of its loop
constexpr double gathered_bytes_per_us = 14e6;
constexpr double moved_bytes_per_us = 4e6;  ///< X and Y once, from and to memory
constexpr double processors = 132;
constexpr double resident_warps = 44;       ///< on each
constexpr double resident_deep_warps = 32;  ///< deep unrolling takes registers

/// What the warps of a launch do. Teams of a warp wait for the longest of their rows, so a warp
/// takes the steps of that one; long rows are shared by the warps of a block.
struct WarpWork {
  double warps = 0;
  double steps = 0;
};

WarpWork work_of(std::span<const EdgeOffset> offsets, const RowsPolicy& policy, int max_steps) {
  WarpWork work;
  const EdgeOffset long_row = EdgeOffset{max_steps} * policy.step();
  const EdgeOffset block_step = EdgeOffset{rows_block_warps} * (32 / policy.lanes) * policy.unroll;
  const std::size_t rows_per_warp = static_cast<std::size_t>(32 / policy.team());
  for (std::size_t row = 0; row + 1 < offsets.size();) {
    const std::size_t end = std::min(row + rows_per_warp, offsets.size() - 1);
    EdgeOffset longest = 0;
    for (; row < end; ++row) {
      const EdgeOffset degree = offsets[row + 1] - offsets[row];
      if (degree <= long_row) {
        longest = std::max(longest, degree);
      } else {
        work.warps += rows_block_warps;
        work.steps +=
            static_cast<double>((degree + block_step - 1) / block_step) * rows_block_warps;
      }
    }
    work.warps += 1;
    work.steps += static_cast<double>((longest + policy.step() - 1) / policy.step());
  }
  return work;
}

}  // namespace

std::int64_t lanes_wanted(const SpmmProblem& problem) {
  const std::int64_t bytes =
      problem.features * static_cast<std::int64_t>(bytes_per_element(problem.precision));
  return bytes % 16 == 0 ? bytes / 16 : problem.features;
}

double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy) {
  const Graph& graph = problem.graph;
  const auto offsets = problem.pass == SpmmPass::forward ? graph.row_offsets().span()
                                                         : graph.csc().col_offsets.span();
  const double row_bytes = static_cast<double>(problem.features) *
                           static_cast<double>(bytes_per_element(problem.precision));
  const double gathered = static_cast<double>(graph.num_edges()) * row_bytes;
  const double moved =
      (static_cast<double>(graph.num_rows()) + static_cast<double>(graph.num_cols())) * row_bytes;
  const WarpWork work = work_of(offsets, policy, steps_before_cut(gathered));
  const auto blocks =
      static_cast<double>((lanes_wanted(problem) + policy.lanes - 1) / policy.lanes);
  const double resident = processors * (policy.unroll > 4 ? resident_deep_warps : resident_warps);
  const double waiting = (work.warps * warp_us + work.steps * step_us) * blocks / resident;
  return launch_us + waiting +
         std::max(gathered / gathered_bytes_per_us, moved / moved_bytes_per_us);
}

}  // namespace tessera::ops
