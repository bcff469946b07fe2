// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/spmm/cuda/rows/launch.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

/// docs/benchmarking.md says how well they choose.
struct RowsCoefficients {
  double launch_us;
  double warp_us;             ///< a warp's start and end, with two offsets, ids, a store
  double listed_warp_us;      ///< where one load brings what three did
  double step_us;             ///< one step of its loop, while others wait for theirs
  double feature_us;          ///< of a lane, in each step
  double half_feature_us;     ///< more, to widen one of 16 bits
  double last_step_us;        ///< of the longest row, which others do not hide
  double moved_bytes_per_us;  ///< X, Y and a list once, from and to memory
  double value_us;            ///< for an edge that has a value
  /// Rows of X that warps gather, half a kilobyte at once. Parts of rows pass faster: of all of
  /// them together more is in L1 and L2.
  double gathered_bytes_per_us;
  double part_bytes;
  double part_exponent;
  /// The longest of waiting, gathering and moving decides, and a little of the others.
  double power;

  RowsCoefficients scaled(DeviceRatio ratio) const {
    RowsCoefficients scaled = *this;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.gathered_bytes_per_us *= ratio.processors;
    scaled.value_us /= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<RowsCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15",
                     "all row kernels on eight graphs at 16 to 256 features in fp32 and bf16"),
      {.launch_us = 7.2,
       .warp_us = 1.28,
       .listed_warp_us = 1.13,
       .step_us = 0.29,
       .feature_us = 0.044,
       .half_feature_us = 0.007,
       .last_step_us = 0.25,
       .moved_bytes_per_us = 4.85e6,
       .value_us = 1.25e-5,
       .gathered_bytes_per_us = 12e6,
       .part_bytes = 512,
       .part_exponent = 0.15,
       .power = 2.9}}}};

std::span<const EdgeOffset> offsets_of(const SpmmProblem& problem) {
  return problem.pass == SpmmPass::forward ? problem.graph.row_offsets().span()
                                           : problem.graph.csc().col_offsets.span();
}

/// What the warps of a launch take if they wait for nothing but each other.
double waiting_us(const RowsWork& work, const RowsPolicy& policy, double feature_bytes,
                  const RowsCoefficients& fit, double processors) {
  const double features = policy.bytes / feature_bytes * policy.vectors;
  const double one_step_us =
      fit.step_us + features * (fit.feature_us + (feature_bytes == 2 ? fit.half_feature_us : 0));
  const double of_warp_us = policy.listed ? fit.listed_warp_us : fit.warp_us;
  return (work.warps * of_warp_us + work.steps * one_step_us) /
         (processors * resident_warps(policy));
}

std::shared_ptr<const DegreeStatistics> degrees_of(const SpmmProblem& problem) {
  return problem.pass == SpmmPass::forward ? row_degrees(problem.graph)
                                           : column_degrees(problem.graph);
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

RowsCut rows_cut(const SpmmProblem& problem, const RowsPolicy& policy, const DeviceTraits& traits) {
  const auto degrees = degrees_of(problem);
  return choose_cut({offsets_of(problem), *degrees}, policy, blocks_of_features(problem, policy),
                    traits);
}

double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy,
                         const DeviceTraits& traits) {
  const RowsCoefficients fit = coefficients_for(coefficients, traits);
  const Graph& graph = problem.graph;
  const auto degrees = degrees_of(problem);
  const auto feature_bytes = static_cast<double>(bytes_per_element(problem.precision));
  const double row_bytes = static_cast<double>(problem.features) * feature_bytes;
  const double rows = static_cast<double>(graph.num_rows());
  const double list_bytes = policy.listed ? rows * sizeof(RowStart) : 0;
  const double moved = (rows + static_cast<double>(graph.num_cols())) * row_bytes + list_bytes;
  const double at_once =
      std::max(1.0, std::min(row_bytes, double(policy.lanes * policy.vectors * policy.bytes)));
  const double gathered = static_cast<double>(graph.num_edges()) * row_bytes;
  const RowsCut cut = rows_cut(problem, policy, traits);
  const RowsWork work = work_of({offsets_of(problem), *degrees}, policy, cut);
  const double waiting = blocks_of_features(problem, policy) *
                         waiting_us(work, policy, feature_bytes, fit, traits.processors);
  const double gathering =
      gathered / fit.gathered_bytes_per_us * std::pow(at_once / fit.part_bytes, fit.part_exponent);
  const double sum = std::pow(waiting, fit.power) + std::pow(gathering, fit.power) +
                     std::pow(moved / fit.moved_bytes_per_us, fit.power);
  const bool valued = graph.has_values() || problem.edge_values_expected;
  const double values = valued ? fit.value_us * static_cast<double>(graph.num_edges()) : 0;
  return fit.launch_us + fit.last_step_us * cut.waited_steps() + std::pow(sum, 1 / fit.power) +
         values;
}

}  // namespace tessera::ops
