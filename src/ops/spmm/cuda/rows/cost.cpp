// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/cost.hpp"

#include <algorithm>
#include <cmath>

#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {
namespace {

// Fitted to timings of all row kernels on an H200, eight graphs at 16 to 256 features in fp32 and
// bf16 (docs/benchmarking.md says how well they choose).
constexpr double processors = 132;
constexpr double launch_us = 7.2;
constexpr double warp_us = 1.28;         ///< a warp's start and end, with two offsets, ids, a store
constexpr double listed_warp_us = 1.13;  ///< where one load brings what three did
constexpr double step_us = 0.29;         ///< one step of its loop, while others wait for theirs
constexpr double feature_us = 0.044;     ///< of a lane, in each step
constexpr double half_feature_us = 0.007;      ///< more, to widen one of 16 bits
constexpr double last_step_us = 0.25;          ///< of the longest row, which others do not hide
constexpr double moved_bytes_per_us = 4.85e6;  ///< X, Y and a list once, from and to memory
constexpr double value_us = 1.25e-5;           ///< of an edge that has one
/// Rows of X that warps gather, half a kilobyte at once. Parts of rows pass faster: of all of them
/// together more is in L1 and L2.
constexpr double gathered_bytes_per_us = 12e6;
constexpr double part_bytes = 512;
constexpr double part_exponent = 0.15;
/// The longest of waiting, gathering and moving decides, and a little of the others.
constexpr double power = 2.9;

std::span<const EdgeOffset> offsets_of(const SpmmProblem& problem) {
  return problem.pass == SpmmPass::forward ? problem.graph.row_offsets().span()
                                           : problem.graph.csc().col_offsets.span();
}

/// What the warps of a launch take if they wait for nothing but each other.
double waiting_us(const RowsWork& work, const RowsPolicy& policy, double feature_bytes) {
  const double features = policy.bytes / feature_bytes * policy.vectors;
  const double one_step_us =
      step_us + features * (feature_us + (feature_bytes == 2 ? half_feature_us : 0));
  const double of_warp_us = policy.listed ? listed_warp_us : warp_us;
  return (work.warps * of_warp_us + work.steps * one_step_us) /
         (processors * resident_warps(policy));
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
  const auto feature_bytes = static_cast<double>(bytes_per_element(problem.precision));
  const double row_bytes = static_cast<double>(problem.features) * feature_bytes;
  const double rows = static_cast<double>(graph.num_rows());
  const double list_bytes = policy.listed ? rows * sizeof(RowStart) : 0;
  const double moved = (rows + static_cast<double>(graph.num_cols())) * row_bytes + list_bytes;
  const double at_once =
      std::max(1.0, std::min(row_bytes, double(policy.lanes * policy.vectors * policy.bytes)));
  const double gathered = static_cast<double>(graph.num_edges()) * row_bytes;
  const RowsCut cut = rows_cut(problem, policy);
  const double waiting =
      blocks_of_features(problem, policy) *
      waiting_us(work_of(offsets_of(problem), policy, cut), policy, feature_bytes);
  const double gathering =
      gathered / gathered_bytes_per_us * std::pow(at_once / part_bytes, part_exponent);
  const double sum = std::pow(waiting, power) + std::pow(gathering, power) +
                     std::pow(moved / moved_bytes_per_us, power);
  const bool valued = graph.has_values() || problem.edge_values_expected;
  const double values = valued ? value_us * static_cast<double>(graph.num_edges()) : 0;
  return launch_us + last_step_us * cut.waited_steps() + std::pow(sum, 1 / power) + values;
}

}  // namespace tessera::ops
