// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/degrees.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct RowsAttentionCoefficients {
  double launch_us;
  double row_us;              ///< per row that a group of lanes takes, over its lanes
  double edge_lane_us;        ///< per edge and lane, in a warp of a processor
  double moved_bytes_per_us;  ///< features once, from and to memory
  double gathered_bytes_per_us;
  double power;  ///< the longest of these decides, and a little of the others

  RowsAttentionCoefficients scaled(DeviceRatio ratio) const {
    RowsAttentionCoefficients scaled = *this;
    scaled.row_us /= ratio.processors;
    scaled.edge_lane_us /= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.gathered_bytes_per_us *= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<RowsAttentionCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15", "the probe of GAT by rows on eight graphs"),
      {.launch_us = 6,
       .row_us = 4e-6,
       .edge_lane_us = 7e-7,
       .moved_bytes_per_us = 4.2e6,
       .gathered_bytes_per_us = 11e6,
       .power = 2}}}};

template <class List>
std::optional<LaneVectors> expected_of(const List& list, std::int64_t width) {
  const auto index = choose_lane_vectors(list, width, width);
  if (!index) return std::nullopt;
  return list[*index];
}

}  // namespace

std::optional<LaneVectors> expected_lane_vectors(const AttentionOptions& options) {
  const std::int64_t width = options.features / options.heads;
  if (bytes_per_element(options.precision) == 2) return expected_of(lane_vectors_16, width);
  return expected_of(lane_vectors_32, width);
}

double predict_rows_attention_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const RowsAttentionCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const Graph& graph = problem.graph;
  const auto held = expected_lane_vectors(options);
  const auto shape = LaneShape::of(options.heads, options.features / options.heads, *held);
  const double lanes = static_cast<double>(shape->lanes) * shape->num_slices;
  const double matrices = options.form == AttentionForm::gat ? 1 : 2;
  const double row_bytes = static_cast<double>(options.features) *
                           static_cast<double>(bytes_per_element(options.precision));
  const auto rows = static_cast<double>(graph.num_rows());
  const auto edges = static_cast<double>(graph.num_edges());
  const double working = lanes * (rows * fit.row_us + edges * fit.edge_lane_us * held->vectors);
  const double moving =
      (rows + matrices * static_cast<double>(graph.num_cols())) * row_bytes / fit.moved_bytes_per_us;
  const double gathering = edges * matrices * row_bytes / fit.gathered_bytes_per_us;
  return fit.launch_us + std::pow(std::pow(working, fit.power) + std::pow(moving, fit.power) +
                                      std::pow(gathering, fit.power),
                                  1 / fit.power);
}

}  // namespace tessera::ops
