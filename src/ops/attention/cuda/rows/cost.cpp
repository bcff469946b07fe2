// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/degrees.hpp"
#include "ops/gathers.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct RowsAttentionCoefficients {
  double launch_us;
  double row_us;              ///< per row and lane of an edge
  double edge_us;             ///< per edge and lane
  double summed_score;        ///< times so much where a score is a sum over features
  double exchange;            ///< and so much more for every doubling of the lanes of a head
  double second_vector;       ///< times so much where lanes hold two vectors
  double moved_bytes_per_us;  ///< features once, from and to memory
  GatherRates gathers;        ///< of rows of both matrices
  double power;               ///< the slowest of all counts, and some of the others: all at 1
  double narrow_score;        ///< times as much for a score of 16-bit features, two rows to widen
  double narrow_gatv2;        ///< the same in GATv2
  double backward;            ///< as many forward passes, but for the launch
  double dot_backward;        ///< the same for dot products
  double gatv2_backward;

  RowsAttentionCoefficients scaled(DeviceRatio ratio) const {
    RowsAttentionCoefficients scaled = *this;
    scaled.row_us /= ratio.processors;
    scaled.edge_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.gathers = gathers.scaled(ratio.processors, ratio.memory);
    return scaled;
  }
};

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Of 16-bit features: what warps do for an edge takes longer than its bytes.
constexpr std::array<Fitted<RowsAttentionCoefficients>, 1> half_coefficients = {
    {{fitted_on_h200("2026-11-17", "six shapes of GAT and dot products on seven graphs"),
      {.launch_us = 13.2,
       .row_us = 5e-7,
       .edge_us = 2.37e-6,
       .summed_score = 1.03,
       .exchange = 0.045,
       .second_vector = 1.38,
       .moved_bytes_per_us = 4.2e6,
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
       .gatv2_backward = 4.0}}}};

/// Of fp32: rows come as fast as caches give them.
constexpr std::array<Fitted<RowsAttentionCoefficients>, 1> full_coefficients = {
    {{fitted_on_h200("2026-11-18",
                     "GAT and dot products, most of 8 heads of 8, on 17 graphs of "
                     "2,708 to 880,000 vertices"),
      {.launch_us = 11.1,
       .row_us = 1.18e-5,
       .edge_us = 1.21e-6,
       .summed_score = 0.5,
       .exchange = 0,
       .second_vector = 2,
       .moved_bytes_per_us = 3.1e6,
       .gathers = {.near_bytes_per_us = 14.9e6,
                   .cached_bytes_per_us = 8.77e6,
                   .missed_bytes_per_us = 10.2e6,
                   .near_bytes = 147e3,
                   .cached_bytes = 35e6,
                   .window_bytes = 278e3},
       .power = 1.86,
       .narrow_score = 1,
       .narrow_gatv2 = 1,
       .backward = 2.65,
       .dot_backward = 2.6,
       .gatv2_backward = 4.0}}}};

RowsAttentionCoefficients coefficients_of(const AttentionProblem& problem,
                                          const DeviceTraits& traits) {
  const bool half = bytes_per_element(problem.options.precision) == 2;
  return coefficients_for(half ? half_coefficients : full_coefficients, traits);
}

/// Rows are expected to begin on boundaries.
template <class List>
std::optional<LaneVectors> expected_of(const List& list, std::int64_t heads, std::int64_t width,
                                       bool two_vectors, std::int64_t most) {
  const LaneBoundaries boundaries{std::gcd(width, most), heads == 1 ? most : 1};
  const auto index = choose_lane_vectors(list, width, boundaries, two_vectors ? 2 : 1);
  if (!index) return std::nullopt;
  return list[*index];
}

}  // namespace

/// Measured in fp32 on seven graphs of 10^4 to 2.5 * 10^7 edges.
bool wants_two_vectors(const AttentionProblem& problem, AttentionSweep sweep) {
  const EdgeOffset edges = problem.graph.num_edges();
  if (sweep == AttentionSweep::backward) return edges >= 500'000;
  if (edges < 1'000'000) return false;
  const bool low_degree = edges < EdgeOffset{16} * problem.graph.num_rows();
  // In wide heads many lanes exchange what their scores are made of; dot products were not
  // measured.
  const AttentionOptions& options = problem.options;
  const bool wide = options.form != AttentionForm::dot && options.features / options.heads > 64;
  return options.form == AttentionForm::gat || wide || low_degree;
}

/// By count of instructions: 41 per edge of 128 features in place of 55 with two vectors.
bool wants_four_vectors(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  return options.form == AttentionForm::gatv2 && bytes_per_element(options.precision) == 4 &&
         options.features / options.heads >= 128 && problem.graph.num_edges() >= 1'000'000 &&
         problem.graph.num_edges() >= EdgeOffset{16} * problem.graph.num_rows();
}

std::int64_t most_lane_features(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (bytes_per_element(options.precision) == 4) return 4;
  const std::int64_t width = options.features / options.heads;
  // Wider heads may need all lanes of a warp as it is.
  if (width > 64 || width % 4 != 0) return 8;
  // Four lanes of a head share what follows from the sums of four edges in the gradient of cosines.
  const std::int64_t few_lanes = options.form == AttentionForm::cosine ? 64'000 : 32'000;
  return problem.graph.num_rows() * (options.features / 8) < few_lanes ? 4 : 8;
}

std::optional<LaneVectors> expected_lane_vectors(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  const std::int64_t width = options.features / options.heads;
  const bool two = wants_two_vectors(problem, AttentionSweep::forward);
  if (bytes_per_element(options.precision) == 2) {
    return expected_of(lane_vectors_16, options.heads, width, two, most_lane_features(problem));
  }
  return expected_of(lane_vectors_32, options.heads, width, two, most_lane_features(problem));
}

double predict_rows_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const RowsAttentionCoefficients fit = coefficients_of(problem, traits);
  const AttentionOptions& options = problem.options;
  const Graph& graph = problem.graph;
  const auto held = expected_lane_vectors(problem);
  const auto shape = LaneShape::of(options.heads, options.features / options.heads, *held);
  const double lanes = static_cast<double>(shape->lanes) * shape->num_slices;
  const bool gathers_scores =
      options.form == AttentionForm::gatv2 || options.form == AttentionForm::dot;
  const double matrices = gathers_scores ? 2 : 1;
  const double row_bytes = static_cast<double>(options.features) *
                           static_cast<double>(bytes_per_element(options.precision));
  const auto rows = static_cast<double>(graph.num_rows());
  const auto edges = static_cast<double>(graph.num_edges());
  const double of_widening =
      options.form == AttentionForm::gatv2 ? fit.narrow_gatv2 : fit.narrow_score;
  const double of_score =
      options.form == AttentionForm::gat
          ? 1
          : (fit.summed_score + fit.exchange * shape->log_head_lanes) * of_widening;
  const double of_vectors = held->vectors == 1 ? 1 : fit.second_vector * held->vectors / 2;
  const double working = lanes * (rows * fit.row_us + edges * fit.edge_us * of_score * of_vectors);
  const double moving = (rows + matrices * static_cast<double>(graph.num_cols())) * row_bytes /
                        fit.moved_bytes_per_us;
  const double edge_bytes = matrices * row_bytes;
  const double gathering =
      edges * edge_bytes * fit.gathers.us_per_byte_beside_targets(graph, edge_bytes);
  const double sum =
      std::pow(working, fit.power) + std::pow(moving, fit.power) + std::pow(gathering, fit.power);
  return fit.launch_us + std::pow(sum, 1 / fit.power);
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
