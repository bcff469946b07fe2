// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/hybrid/cost.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ops/plan/tuning.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

/// Times of launches and shares: the same everywhere.
struct HybridCoefficients {
  double second_launch_us;
  /// How many times what edges of a whole graph cost those of single windows do, by the size of
  /// features: windows that share little are where caches help rows least, and rows of X that do
  /// not fit into L2 come from memory, whatever cores ask for them.
  double full_edges;
  double half_edges;
  /// How many times that a second launch takes, which comes as places are left.
  double second_rows;
  /// A part with fewer of the edges is not worth a launch.
  double least_share;
  /// Where all windows go to the same cores: a little more than the kernel of those cores, which
  /// needs no list.
  double same_cores;
};

constexpr Fitted<HybridCoefficients> coefficients = {
    fitted_on_h200("2026-11-16", "ego-twitter and cnr-2000 at 64 and 128 features, by hand"),
    {.second_launch_us = 1.5,
     .full_edges = 1.15,
     .half_edges = 2.5,
     .second_rows = 1.13,
     .least_share = 0.03,
     .same_cores = 1.03}};

bool may_take(const SpmmProblem& problem, const RowsPolicy& policy) {
  return lanes_fit(problem, policy) &&
         takes(policy, static_cast<int>(bytes_per_element(problem.precision)));
}

/// Which of `rows_policies` has the least of such times; their number where none takes the problem.
template <class Time>
std::size_t fastest_policy(const SpmmProblem& problem, Time&& us_of) {
  std::size_t best = rows_policies.size();
  double least_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < rows_policies.size(); ++i) {
    if (!may_take(problem, rows_policies[i])) continue;
    const double us = us_of(rows_policies[i]);
    if (us >= least_us) continue;
    best = i;
    least_us = us;
  }
  return best;
}

/// The distinct columns of windows that are spread evenly: all of them where they are known.
std::shared_ptr<const std::vector<std::int32_t>> columns_of_windows(const Graph& graph,
                                                                    tiles::Side side) {
  if (auto all = tiles::known_window_counts(graph, tiles::chosen_windows, side)) {
    return {all, &all->columns};
  }
  return tiles::sampled_columns(graph, side);
}

}  // namespace

WindowedRows::WindowedRows(const SpmmProblem& problem, const HybridPolicy& policy)
    : graph(problem.graph), side(tile_side(problem.pass)) {
  if (policy.ordered) {
    order = row_order(problem);
    graph = order->graph;
    side = tiles::Side::forward;
    offsets = graph.row_offsets();
  } else {
    offsets = ProblemRows(problem).offsets;
  }
}

WindowCosts window_costs(const SpmmProblem& problem, const HybridPolicy& policy,
                         const DeviceTraits& traits) {
  WindowCosts costs;
  costs.tall = tall_window_cost(problem, policy.tall, traits);
  const HybridCoefficients fit = coefficients.on(traits);
  const bool half = bytes_per_element(problem.precision) == 2;
  const double dearer = half ? fit.half_edges : fit.full_edges;
  const ProblemRows rows(problem);
  const auto num_rows = static_cast<double>(rows.degrees->num_rows);
  const auto num_edges = static_cast<double>(rows.degrees->num_edges);
  const std::size_t best = fastest_policy(problem, [&](const RowsPolicy& each) {
    return rows_unit_cost(problem, each, traits)(num_rows, num_edges);
  });
  if (best < rows_policies.size()) {
    costs.rows = rows_unit_cost(problem, rows_policies[best], traits).times(dearer);
  }
  return costs;
}

std::size_t best_rows_policy(const SpmmProblem& problem, const RowLengths& rows,
                             const DeviceTraits& traits) {
  return fastest_policy(problem, [&](const RowsPolicy& each) {
    return chosen_parts(problem, rows, each, traits).us;
  });
}

namespace {

double least_rows_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  const ProblemRows rows(problem);
  const std::size_t best = best_rows_policy(problem, rows.lengths(), traits);
  return chosen_parts(problem, rows.lengths(), rows_policies[best], traits).us;
}

}  // namespace

double predict_ordered_rows_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  SpmmProblem ordered = in_row_order(problem);
  ordered.edge_values_expected = problem.edge_values_expected || problem.graph.has_values();
  return least_rows_us(ordered, traits);
}

double predict_hybrid_us(const SpmmProblem& problem, const HybridPolicy& policy,
                         const DeviceTraits& traits) {
  const HybridCoefficients fit = coefficients.on(traits);
  const WindowedRows rows(problem, policy);
  const WindowCosts costs = window_costs(problem, policy, traits);
  const int height = policy.tall.height;
  const auto sample = columns_of_windows(rows.graph, rows.side);
  const auto num_rows = static_cast<std::int64_t>(rows.offsets.size()) - 1;
  const std::int64_t windows = (num_rows + height - 1) / height;
  const auto sampled = std::ssize(*sample);
  TallWork tall;
  double rows_us = 0, edges_seen = 0, tall_edges = 0;
  for (std::int64_t i = 0; i < sampled; ++i) {
    const std::int64_t first = windows * i / sampled * height;
    const std::int64_t end = std::min(num_rows, first + height);
    const auto edges = static_cast<double>(rows.offsets[end] - rows.offsets[first]);
    const auto columns = static_cast<double>((*sample)[static_cast<std::size_t>(i)]);
    const double on_cuda_us = costs.on_cuda_cores(static_cast<double>(end - first), edges);
    edges_seen += edges;
    if (costs.on_tensor_cores(columns) < on_cuda_us) {
      tall.windows += 1;
      tall.columns += columns;
      tall.longest_columns = std::max(tall.longest_columns, columns);
      tall_edges += edges;
    } else {
      rows_us += on_cuda_us;
    }
  }
  const double tall_share = edges_seen == 0 ? 0 : tall_edges / edges_seen;
  if (!policy.ordered && tall_share > 1 - fit.least_share) {
    return fit.same_cores * predict_tall_us(problem, policy.tall, traits);
  }
  if (tall_share < fit.least_share) {
    return fit.same_cores * least_rows_us(problem, traits);
  }
  // As samples of all windows are taken for so much as their share of the edges.
  const PassSizes sizes = sizes_of(problem);
  const double scale = sizes.edges / std::max(1.0, edges_seen);
  tall.windows *= static_cast<double>(windows) / std::max<double>(1, static_cast<double>(sampled));
  tall.columns *= scale;
  tall.other_us = fit.second_rows * scale * rows_us;
  tall.moved_bytes = sizes.vertices * sizes.row_bytes;
  return predict_tall_us(problem, policy.tall, tall, traits) + fit.second_launch_us;
}

}  // namespace tessera::ops
