// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/rows/lane_choice.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

struct RowsAttentionCoefficients {
  double launch_us;
  double row_us;         ///< per row and lane of an edge
  double edge_us;        ///< per edge and lane
  double summed_score;   ///< times so much where a score is a sum over features
  double exchange;       ///< and so much more for every doubling of the lanes of a head
  double second_vector;  ///< times so much where lanes hold two vectors
  double moved_bytes_per_us = streamed_bytes_per_us;  ///< features once, from and to memory
  GatherRates gathers;                                ///< of rows of both matrices
  double power;         ///< the slowest of all counts, and some of the others: all at 1
  double narrow_score;  ///< times as much for a score of 16-bit features, two rows to widen
  double narrow_gatv2;  ///< the same in GATv2
  double backward;      ///< as many forward passes, but for the launch
  double dot_backward;  ///< the same for dot products
  double gatv2_backward;

  void scale(DeviceRatio ratio) {
    row_us /= ratio.processors;
    edge_us /= ratio.processors;
    moved_bytes_per_us *= ratio.memory;
    gathers.scale(ratio);
  }
};

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Of 16-bit features: what warps do for an edge takes longer than its bytes.
constexpr Fitted<RowsAttentionCoefficients> half_coefficients = {
    fitted_on_h200("2026-11-17", "six shapes of GAT and dot products on seven graphs"),
    {.launch_us = 13.2,
     .row_us = 5e-7,
     .edge_us = 2.37e-6,
     .summed_score = 1.03,
     .exchange = 0.045,
     .second_vector = 1.38,
     .gathers = {.near_bytes_per_us = 5.6e7,
                 .cached_bytes_per_us = 5.6e7,
                 .missed_bytes_per_us = unlimited,
                 .near_bytes = 0,
                 .cached_bytes = unlimited,
                 .window_bytes = 0},
     .power = 1,
     .narrow_score = 1.5,
     .narrow_gatv2 = 1.6,
     .backward = 2.65,
     .dot_backward = 3.2,
     .gatv2_backward = 4.0}};

/// Of fp32: rows come as fast as caches give them.
constexpr Fitted<RowsAttentionCoefficients> full_coefficients = {
    fitted_on_h200(
        "2026-11-18",
        "GAT and dot products, most of 8 heads of 8, on 17 graphs of 2,708 to 880,000 vertices"),
    {.launch_us = 11.1,
     .row_us = 1.18e-5,
     .edge_us = 1.21e-6,
     .summed_score = 0.5,
     .exchange = 0,
     .second_vector = 2,
     .gathers = {.near_bytes_per_us = 14.9e6,
                 .cached_bytes_per_us = 8.77e6,
                 .missed_bytes_per_us = 10.2e6},
     .power = 1.86,
     .narrow_score = 1,
     .narrow_gatv2 = 1,
     .backward = 2.65,
     .dot_backward = 2.6,
     .gatv2_backward = 4.0}};

RowsAttentionCoefficients coefficients_of(const AttentionProblem& problem,
                                          const DeviceTraits& traits) {
  const bool half = bytes_per_element(problem.options.precision) == 2;
  return (half ? half_coefficients : full_coefficients).on(traits);
}

}  // namespace

double predict_rows_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const RowsAttentionCoefficients fit = coefficients_of(problem, traits);
  const AttentionOptions& options = problem.options;
  const LaneVectors held = expected_lane_vectors(problem);
  const LaneShape shape = LaneShape::of(options.heads, options.features / options.heads, held);
  const double lanes = static_cast<double>(shape.lanes) * shape.num_slices;
  const bool gathers_scores =
      options.form == AttentionForm::gatv2 || options.form == AttentionForm::dot;
  const double matrices = gathers_scores ? 2 : 1;
  const PassSizes sizes = sizes_of(problem);
  const double of_widening =
      options.form == AttentionForm::gatv2 ? fit.narrow_gatv2 : fit.narrow_score;
  const double of_score =
      options.form == AttentionForm::gat
          ? 1
          : (fit.summed_score + fit.exchange * shape.log_head_lanes) * of_widening;
  const double of_vectors = held.vectors == 1 ? 1 : fit.second_vector * held.vectors / 2;
  const double working =
      lanes * (sizes.targets * fit.row_us + sizes.edges * fit.edge_us * of_score * of_vectors);
  const double moving =
      (sizes.targets + matrices * sizes.sources) * sizes.row_bytes / fit.moved_bytes_per_us;
  const double edge_bytes = matrices * sizes.row_bytes;
  const double gathering =
      sizes.edges * edge_bytes * fit.gathers.us_per_byte_beside_targets(problem.graph, edge_bytes);
  return fit.launch_us + side_by_side({working, moving, gathering}, fit.power);
}

double predict_rows_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  if (!problem.options.backward) return 0;
  const RowsAttentionCoefficients fit = coefficients_of(problem, traits);
  double passes = fit.backward;
  if (problem.options.form == AttentionForm::dot) {
    passes = fit.dot_backward;
  } else if (problem.options.form == AttentionForm::gatv2) {
    passes = fit.gatv2_backward;
  }
  // Its launches follow those of the forward pass at once, and cost as much as one that begins.
  return fit.launch_us + passes * (predict_rows_attention_us(problem, traits) - fit.launch_us);
}

}  // namespace tessera::ops
