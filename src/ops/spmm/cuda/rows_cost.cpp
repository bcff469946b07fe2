// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows_cost.hpp"

#include <algorithm>

#include "ops/spmm/cuda/rows.hpp"

namespace tessera::ops {
namespace {

constexpr double launch_us = 7;
constexpr double gathered_bytes_per_us = 14e6;
constexpr double moved_bytes_per_us = 4e6;  ///< X, Y and a list once, from and to memory

std::span<const EdgeOffset> offsets_of(const SpmmProblem& problem) {
  return problem.pass == SpmmPass::forward ? problem.graph.row_offsets().span()
                                           : problem.graph.csc().col_offsets.span();
}

double blocks_of_features(const SpmmProblem& problem, const RowsPolicy& policy) {
  const std::int64_t lanes = lanes_wanted(problem, policy.bytes);
  const std::int64_t at_once = std::int64_t{policy.lanes} * policy.vectors;
  return static_cast<double>((lanes + at_once - 1) / at_once);
}

}  // namespace

std::int64_t lanes_wanted(const SpmmProblem& problem, int lane_bytes) {
  const std::int64_t bytes =
      problem.features * static_cast<std::int64_t>(bytes_per_element(problem.precision));
  return bytes % lane_bytes == 0 ? bytes / lane_bytes : problem.features;
}

RowsCut rows_cut(const SpmmProblem& problem, const RowsPolicy& policy) {
  return choose_cut(offsets_of(problem), policy, blocks_of_features(problem, policy));
}

double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy) {
  const Graph& graph = problem.graph;
  const double row_bytes = static_cast<double>(problem.features) *
                           static_cast<double>(bytes_per_element(problem.precision));
  const double gathered = static_cast<double>(graph.num_edges()) * row_bytes;
  const double rows = static_cast<double>(graph.num_rows());
  const double list_bytes = policy.listed ? rows * sizeof(RowHead) : 0;
  const double moved = (rows + static_cast<double>(graph.num_cols())) * row_bytes;
  const RowsCut cut = rows_cut(problem, policy);
  const double waiting = work_of(offsets_of(problem), policy, cut)
                             .microseconds(policy, blocks_of_features(problem, policy));
  return launch_us + waiting + list_bytes / moved_bytes_per_us +
         std::max(gathered / gathered_bytes_per_us, moved / moved_bytes_per_us);
}

}  // namespace tessera::ops
