// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/panels/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/gathers.hpp"
#include "ops/sddmm/cuda/panels/cut.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct PanelCoefficients {
  double start_us;
  double memory_bytes_per_us;
  double gathered_bytes_per_us;  ///< rows of both ends, once for each panel or piece
  double missed_bytes_per_us;    ///< what rows take more that come from memory again
  double cached_bytes;
  /// What the caches and the shared memory of processors give: a row of U for each edge and every
  /// row that comes from L2, and for each edge so many lines that are exchanged or stored.
  double near_bytes_per_us;
  double lines_per_edge;
  double piece_us;  ///< of a block, before its first edge
  double power;     ///< the slowest of all counts, and a little of the others
  double half;      ///< how many times as long features of 16 bits take, which are widened

  PanelCoefficients scaled(DeviceRatio ratio) const {
    PanelCoefficients scaled = *this;
    scaled.memory_bytes_per_us *= ratio.memory;
    scaled.gathered_bytes_per_us *= ratio.processors;
    scaled.missed_bytes_per_us *= ratio.memory;
    scaled.near_bytes_per_us *= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<PanelCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "15 graphs of 13,752 to 982,289 vertices at 64 to 256 features"),
      {.start_us = 10.5,
       .memory_bytes_per_us = 4.1e6,
       .gathered_bytes_per_us = 31.9e6,
       .missed_bytes_per_us = 5e6,
       .cached_bytes = 44.6e6,
       .near_bytes_per_us = 24.4e6,
       .lines_per_edge = 1.62,
       .piece_us = 0.265,
       .power = 1.528,
       .half = 1.35}}}};

/// Distinct sources of all panels of so many rows, between those of windows that are known.
double distinct_sources(const Graph& graph, int rows) {
  constexpr std::array heights = {64, 128, 256};
  std::array<double, heights.size()> columns;
  for (std::size_t i = 0; i < heights.size(); ++i) {
    columns[i] =
        std::max(1.0, tiles::sample_windows(graph, heights[i], tiles::Side::forward).columns);
  }
  const std::size_t i = rows < heights[1] ? 0 : 1;
  const double slope = std::log2(columns[i + 1] / columns[i]);
  const double steps = std::log2(static_cast<double>(rows) / heights[i]);
  return std::min(static_cast<double>(graph.num_edges()), columns[i] * std::exp2(slope * steps));
}

}  // namespace

double predict_panels_us(const SddmmProblem& problem, const PanelPolicy& policy,
                         const DeviceTraits& traits) {
  const PanelCoefficients fit = coefficients_for(coefficients, traits);
  const Graph& graph = problem.graph;
  const auto edges = static_cast<double>(graph.num_edges());
  const auto num_rows = static_cast<double>(graph.num_rows());
  const double bytes = policy.row_bytes();
  const auto element = static_cast<double>(bytes_per_element(problem.precision));
  const int rows = panel_rows(policy.row_bytes(), traits);
  const double panels = std::max(1.0, std::ceil(num_rows / rows));
  const double pieces = std::max(panels, static_cast<double>(wanted_pieces(graph, rows, traits)));
  const double loaded = distinct_sources(graph, rows) + pieces / panels * num_rows;
  const double missed = missed_beside_targets(graph, fit.cached_bytes / bytes);
  const double gathering =
      bytes * (loaded / fit.gathered_bytes_per_us + missed * edges / fit.missed_bytes_per_us);
  constexpr double line_bytes = 128;
  const double passing =
      (edges * (bytes + fit.lines_per_edge * line_bytes) + loaded * bytes) / fit.near_bytes_per_us;
  const double moving =
      ((num_rows + static_cast<double>(graph.num_cols())) * bytes + edges * (element + 8)) /
      fit.memory_bytes_per_us;
  const double sum =
      std::pow(gathering, fit.power) + std::pow(passing, fit.power) + std::pow(moving, fit.power);
  const double widening = element == 2 ? fit.half : 1;
  return fit.start_us + pieces * fit.piece_us / (traits.processors * panel_blocks) +
         widening * std::pow(sum, 1 / fit.power);
}

}  // namespace tessera::ops
