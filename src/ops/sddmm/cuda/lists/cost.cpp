// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "graph/degrees.hpp"
#include "ops/gathers.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct ListCoefficients {
  double start_us;  ///< until the first row is asked for
  double memory_bytes_per_us;
  GatherRates gathers;               ///< of rows of V, where rows follow each other
  double ahead_missed_bytes_per_us;  ///< what misses take where rows are always on their way
  /// What rows that stand with their hubs share: how many times as many distinct sources as rows
  /// that stand at random have.
  double hub_sources;
  double power;  ///< the slowest of all counts, and a little of the others
  /// Panels: what begins later, rows of both ends once for each panel or share, rows of U for each
  /// edge, and what rows take more that come from memory again.
  double panel_start_us;
  double panel_loaded_bytes_per_us;
  double panel_passed_bytes_per_us;
  double panel_missed_bytes_per_us;
  PolicyFactors<list_policies.size()> factors;
  double other_rows;    ///< how many times as long where rows are not of 512 bytes
  double uneven_share;  ///< of what the longest of single shares takes more than their mean

  ListCoefficients scaled(DeviceRatio ratio) const {
    ListCoefficients scaled = *this;
    scaled.memory_bytes_per_us *= ratio.memory;
    scaled.gathers = gathers.scaled(ratio.processors, ratio.memory);
    scaled.ahead_missed_bytes_per_us *= ratio.memory;
    scaled.panel_loaded_bytes_per_us *= ratio.processors;
    scaled.panel_passed_bytes_per_us *= ratio.processors;
    scaled.panel_missed_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<ListCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "10 graphs of 11,758 to 410,236 vertices at 128 fp32 features"),
      {.start_us = 7.85,
       .memory_bytes_per_us = 4.1e6,
       .gathers = {.near_bytes_per_us = 13.7e6,
                   .cached_bytes_per_us = 8.45e6,
                   .missed_bytes_per_us = 6.2e6,
                   .near_bytes = 147e3,
                   .cached_bytes = 44.6e6,
                   .window_bytes = std::numeric_limits<double>::infinity()},
       .ahead_missed_bytes_per_us = 40e6,
       .hub_sources = 0.75,
       .power = 2.27,
       .panel_start_us = 2.85,
       .panel_loaded_bytes_per_us = 13.7e6,
       .panel_passed_bytes_per_us = 12.66e6,
       .panel_missed_bytes_per_us = 3.66e6,
       .factors = {{1.01, 1, 1.02, 1.02, 1.01, 1, 1.02}, {1.41, 1.4, 1.42, 1.42, 1.41, 1.4, 1.4}},
       .other_rows = 1.2,
       .uneven_share = 0.15}}}};

/// What a problem has to move, in bytes.
struct Bytes {
  double row;
  double gathered;  ///< a row of V for each edge
  double moved;     ///< U, V, the list and the results, once

  Bytes(const SddmmProblem& problem, const ListPolicy& policy) {
    const Graph& graph = problem.graph;
    const auto edges = static_cast<double>(graph.num_edges());
    const auto element = static_cast<double>(bytes_per_element(problem.precision));
    const double listed = policy.order == ListOrder::rows ? 8 : 12;
    row = static_cast<double>(problem.features) * element;
    gathered = edges * row;
    moved = (static_cast<double>(graph.num_rows()) + static_cast<double>(graph.num_cols())) * row +
            edges * (listed + element);
  }
};

/// The distinct sources of all windows of so many rows, if rows stood at random: of each source,
/// the windows that one of its edges falls into. Columns are taken to be used as unevenly as rows.
double random_sources(const Graph& graph, int height) {
  const double windows = std::max(1.0, std::ceil(static_cast<double>(graph.num_rows()) / height));
  double sources = 0;
  for (const DegreeCount& each : row_degrees(graph)->counts) {
    sources += static_cast<double>(each.rows) * windows *
               (1 - std::pow(1 - 1 / windows, static_cast<double>(each.degree)));
  }
  return sources;
}

/// As `gather_shares`, of rows that stand with their hubs.
GatherShares hub_shares(const Graph& graph, const ListCoefficients& fit, double row_bytes) {
  const auto edges = static_cast<double>(graph.num_edges());
  // What does not depend on how rows stand: how much of the edges the caches have by themselves.
  const auto unpopular = [&](double bytes) {
    const GatherShares shares = gather_shares(graph, tiles::Side::forward, bytes / row_bytes, 0);
    const GatherShares none = gather_shares(graph, tiles::Side::forward, 0, 0);
    return none.near < 1 ? (1 - shares.near) / (1 - none.near) : 0.0;
  };
  const auto distinct = [&](int height) {
    return fit.hub_sources * random_sources(graph, height) / edges;
  };
  const double first_times = static_cast<double>(graph.num_cols()) / edges;
  return {1 - distinct(64) * unpopular(fit.gathers.near_bytes),
          std::max(0.0, distinct(256) * unpopular(fit.gathers.cached_bytes) - first_times)};
}

/// How many times as long as their mean the longest of so many shares is, where each row of U that
/// begins in a share counts as an edge: ids may tell of degrees.
double unevenness(const Graph& graph, std::int64_t shares) {
  const auto& offsets = graph.row_offsets();
  const EdgeOffset share = (graph.num_edges() + shares - 1) / shares;
  std::int64_t most = 0, row = 0;
  for (EdgeOffset begin = 0; begin < graph.num_edges(); begin += share) {
    const EdgeOffset end = std::min<EdgeOffset>(begin + share, graph.num_edges());
    const auto next = std::lower_bound(offsets.begin() + row, offsets.end() - 1, end);
    const std::int64_t next_row = next - offsets.begin();
    most = std::max(most, end - begin + next_row - row);
    row = next_row;
  }
  const double mean =
      static_cast<double>(graph.num_edges() + graph.num_rows()) / static_cast<double>(shares);
  return std::max(1.0, static_cast<double>(most) / mean);
}

double gathering_us(const SddmmProblem& problem, const ListPolicy& policy,
                    const ListCoefficients& fit, const Bytes& bytes) {
  GatherRates rates = fit.gathers;
  if (policy.ahead) rates.missed_bytes_per_us = fit.ahead_missed_bytes_per_us;
  if (policy.order == ListOrder::rows) {
    return bytes.gathered * rates.us_per_byte(problem.graph, tiles::Side::forward, bytes.row);
  }
  const GatherShares shares = hub_shares(problem.graph, fit, bytes.row);
  return bytes.gathered *
         (shares.near / rates.near_bytes_per_us + (1 - shares.near) / rates.cached_bytes_per_us +
          shares.missed / rates.missed_bytes_per_us);
}

double panels_us(const SddmmProblem& problem, const ListCoefficients& fit, const Bytes& bytes,
                 const DeviceTraits& traits) {
  const Graph& graph = problem.graph;
  const auto rows = static_cast<double>(graph.num_rows());
  const double sources =
      tiles::sample_windows(graph, list_panel_rows, tiles::Side::forward).columns;
  constexpr double parts_of_panels = 1.3;  // shares end within panels
  const double targets =
      std::max(static_cast<double>(traits.processors) * list_panel_rows, parts_of_panels * rows);
  const double missed =
      gather_shares(graph, tiles::Side::forward, 0, fit.gathers.cached_bytes / bytes.row).missed;
  const double sum =
      std::pow((sources + targets) * bytes.row / fit.panel_loaded_bytes_per_us, fit.power) +
      std::pow(bytes.gathered / fit.panel_passed_bytes_per_us, fit.power) +
      std::pow(bytes.moved / fit.memory_bytes_per_us, fit.power);
  return fit.panel_start_us + std::pow(sum, 1 / fit.power) +
         missed * bytes.gathered / fit.panel_missed_bytes_per_us;
}

}  // namespace

double predict_list_us(const SddmmProblem& problem, const ListPolicy& policy,
                       const DeviceTraits& traits) {
  const ListCoefficients fit = coefficients_for(coefficients, traits);
  if (problem.graph.num_edges() == 0 || problem.features == 0) return fit.start_us;
  const Bytes bytes(problem, policy);
  const bool half = bytes_per_element(problem.precision) == 2;
  constexpr double fitted_row_bytes = 512;
  const bool uneven = policy.shares == 1 && policy.order != ListOrder::hubs;
  const double factor =
      fit.factors.of(list_policies, policy, half) *
      (bytes.row == fitted_row_bytes ? 1 : fit.other_rows) *
      (uneven ? 1 + fit.uneven_share * (unevenness(problem.graph, traits.processors) - 1) : 1);
  if (policy.order == ListOrder::panels) {
    return fit.start_us + factor * panels_us(problem, fit, bytes, traits);
  }
  const double sum = std::pow(gathering_us(problem, policy, fit, bytes), fit.power) +
                     std::pow(bytes.moved / fit.memory_bytes_per_us, fit.power);
  return fit.start_us + factor * std::pow(sum, 1 / fit.power);
}

}  // namespace tessera::ops
