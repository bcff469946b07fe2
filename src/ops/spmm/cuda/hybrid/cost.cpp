// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/hybrid/cost.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ops/spmm/cuda/tile_side.hpp"
#include "ops/tuning.hpp"
#include "tiles/sample.hpp"
#include "tiles/window_counts.hpp"

namespace tessera::ops {
namespace {

struct HybridCoefficients {
  double second_launch_us;
  /// A second end, at which not every processor has something to do, where launches do not overlap.
  double second_end_us;
  /// Costs of single windows are less certain than those of all: how many times what the rows
  /// should take.
  double uncertainty;

  /// Times of launches and shares: the same everywhere.
  HybridCoefficients scaled(DeviceRatio) const { return *this; }
};

constexpr std::array<Fitted<HybridCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-16", "taken from the models of rows and tall windows"),
      {.second_launch_us = 1.5, .second_end_us = 3, .uncertainty = 1.05}}}};

bool may_take(const SpmmProblem& problem, const RowsPolicy& policy) {
  return policy.listed && lanes_fit(problem, policy) &&
         takes(policy, static_cast<int>(bytes_per_element(problem.precision)));
}

/// The distinct columns of windows that are spread evenly: all of them where they are known.
class SampledColumns {
 public:
  SampledColumns(const Graph& graph, tiles::Side side)
      : all_(tiles::known_window_counts(graph, tiles::chosen_windows, side)) {
    if (all_ == nullptr) some_ = tiles::sampled_columns(graph, side);
  }

  const std::vector<std::int32_t>& columns() const {
    return all_ != nullptr ? all_->columns : *some_;
  }

 private:
  std::shared_ptr<const tiles::WindowCounts> all_;
  std::shared_ptr<const std::vector<std::int32_t>> some_;
};

}  // namespace

WindowCosts window_costs(const SpmmProblem& problem, const HybridPolicy& policy,
                         const DeviceTraits& traits) {
  WindowCosts costs;
  costs.tall = tall_window_cost(problem, policy.tall, traits);
  const ProblemRows rows(problem);
  double least_us = std::numeric_limits<double>::infinity();
  for (const RowsPolicy& each : rows_policies) {
    if (!may_take(problem, each)) continue;
    const RowsUnitCost cost = rows_unit_cost(problem, each, traits);
    const double us = cost(static_cast<double>(rows.degrees->num_rows),
                           static_cast<double>(rows.degrees->num_edges));
    if (us >= least_us) continue;
    costs.rows = cost;
    least_us = us;
  }
  return costs;
}

std::size_t best_rows_policy(const SpmmProblem& problem, const RowLengths& rows,
                             const DeviceTraits& traits) {
  std::size_t best = rows_policies.size();
  double least_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < rows_policies.size(); ++i) {
    if (!may_take(problem, rows_policies[i])) continue;
    const double us = predicted_rows_us(problem, rows, rows_policies[i], traits);
    if (us >= least_us) continue;
    best = i;
    least_us = us;
  }
  return best;
}

double predict_hybrid_us(const SpmmProblem& problem, const HybridPolicy& policy,
                         const DeviceTraits& traits) {
  const HybridCoefficients fit = coefficients_for(coefficients, traits);
  const ProblemRows rows(problem);
  const WindowCosts costs = window_costs(problem, policy, traits);
  const int height = policy.tall.height;
  const SampledColumns sample(problem.graph, tile_side(problem.pass));
  const auto num_rows = static_cast<std::int64_t>(rows.offsets.size()) - 1;
  const std::int64_t windows = (num_rows + height - 1) / height;
  const auto sampled = static_cast<std::int64_t>(sample.columns().size());
  TallWork tall;
  double rows_us = 0, edges_seen = 0;
  for (std::int64_t i = 0; i < sampled; ++i) {
    const std::int64_t first = windows * i / sampled * height;
    const std::int64_t end = std::min(num_rows, first + height);
    const auto edges = static_cast<double>(rows.offsets[end] - rows.offsets[first]);
    const auto columns = static_cast<double>(sample.columns()[static_cast<std::size_t>(i)]);
    const auto window_rows = static_cast<double>(end - first);
    edges_seen += edges;
    const double on_cuda_us = costs.on_cuda_cores(window_rows, edges);
    if (costs.on_tensor_cores(columns) < on_cuda_us) {
      tall.windows += 1;
      tall.columns += columns;
      tall.longest_columns = std::max(tall.longest_columns, columns);
    } else {
      rows_us += on_cuda_us;
    }
  }
  // As samples of all windows are taken for so much as their share of the edges.
  const double scale = static_cast<double>(rows.degrees->num_edges) / std::max(1.0, edges_seen);
  tall.windows *= static_cast<double>(windows) / std::max<double>(1, static_cast<double>(sampled));
  tall.columns *= scale;
  const auto vertices =
      static_cast<double>(problem.graph.num_rows()) + static_cast<double>(problem.graph.num_cols());
  tall.moved_bytes = vertices * static_cast<double>(problem.features) *
                     static_cast<double>(bytes_per_element(problem.precision));
  const double others_us = fit.uncertainty * scale * rows_us;
  if (policy.overlapped) {
    tall.other_us = others_us;
    return predict_tall_us(problem, policy.tall, tall, traits) + fit.second_launch_us;
  }
  return predict_tall_us(problem, policy.tall, tall, traits) + others_us + fit.second_end_us +
         fit.second_launch_us;
}

}  // namespace tessera::ops
