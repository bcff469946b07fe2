// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/sddmm/cuda/lists/loads.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct ListCoefficients {
  double start_us;        ///< until the first row is asked for
  double more_shares_us;  ///< more, where a processor has several shares
  /// What rows take on their way to registers: from the first-level cache, from the second, and
  /// from memory.
  double near_bytes_per_us;
  double second_bytes_per_us;
  double memory_bytes_per_us;
  double near_bytes;    ///< of the first-level cache
  double second_bytes;  ///< that the second-level cache keeps of what was used last
  double scattered;     ///< how many times as long rows that stand with their hubs take from memory
  /// Instructions of an edge, those of each feature that has to be widened, and finding the place
  /// of a result where edges are listed in another order.
  double edge_us;
  double widened_us;
  double place_us;
  double power;  ///< the slowest of all counts, and some of the others
  /// Where rows are always on their way the others count less.
  double ahead_power;
  double ahead_second_bytes_per_us;
  double ahead_widened_us;
  double uneven_share;  ///< of what the longest of single shares takes more than their mean
  std::array<double, list_policies.size()> factors;  ///< in the order of `list_policies`

  ListCoefficients scaled(DeviceRatio ratio) const {
    ListCoefficients scaled = *this;
    scaled.near_bytes_per_us *= ratio.processors;
    scaled.second_bytes_per_us *= ratio.processors;
    scaled.ahead_second_bytes_per_us *= ratio.processors;
    scaled.memory_bytes_per_us *= ratio.memory;
    scaled.edge_us /= ratio.processors;
    scaled.widened_us /= ratio.processors;
    scaled.ahead_widened_us /= ratio.processors;
    scaled.place_us /= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<ListCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-18",
                     "46 graphs of 7,575 to 1.7 M vertices, most of them at 128 features, in fp32 "
                     "and bf16; 13 of them at 64 or 256"),
      {.start_us = 7.9,
       .more_shares_us = 2.7,
       .near_bytes_per_us = 13.4e6,
       .second_bytes_per_us = 15.7e6,
       .memory_bytes_per_us = 4.6e6,
       .near_bytes = 200e3,
       .second_bytes = 40e6,
       .scattered = 1.05,
       .edge_us = 11.2e-6,
       .widened_us = 4.9e-8,
       .place_us = 5.1e-6,
       .power = 1.77,
       .ahead_power = 2.4,
       .ahead_second_bytes_per_us = 11.5e6,
       .ahead_widened_us = 1.09e-7,
       .uneven_share = 0.42,
       .factors = {0.978, 0.961, 0.982, 1.012, 0.945, 0.987, 1.07}}}}};

double factor_of(const ListCoefficients& fit, const ListPolicy& policy) {
  for (std::size_t i = 0; i < list_policies.size(); ++i) {
    if (list_policies[i] == policy) return fit.factors[i];
  }
  return 1;
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

/// What the longest share of a policy adds: shares of a processor that has several even out.
double unevenness(const Graph& graph, const ListPolicy& policy, const ListCoefficients& fit,
                  const DeviceTraits& traits) {
  if (policy.shares == 0 || policy.order == ListOrder::hubs) return 1;
  const double of_longest = unevenness(graph, traits.processors) - 1;
  return 1 + fit.uneven_share / std::sqrt(double(policy.shares)) * of_longest;
}

}  // namespace

double predict_list_us(const SddmmProblem& problem, const ListPolicy& policy,
                       const DeviceTraits& traits) {
  const ListCoefficients fit = coefficients_for(coefficients, traits);
  const Graph& graph = problem.graph;
  if (graph.num_edges() == 0 || problem.features == 0) return fit.start_us;
  const auto edges = static_cast<double>(graph.num_edges());
  const auto features = static_cast<double>(problem.features);
  const auto element = static_cast<double>(bytes_per_element(problem.precision));
  const double row = features * element;
  const ListLoads loads = list_loads(
      graph, policy,
      {fit.near_bytes / row, fit.second_bytes / row, static_cast<double>(traits.processors)});
  const double listed = (policy.order == ListOrder::rows ? 8 : 12) + element;
  const double scattered = policy.order == ListOrder::hubs ? fit.scattered : 1;
  const double from_memory = loads.memory > 0 ? row * scattered * loads.memory + listed : 0;
  const double widened_us = policy.ahead ? fit.ahead_widened_us : fit.widened_us;
  const double issuing = fit.edge_us + (element == 2 ? features * widened_us : 0) +
                         (policy.order == ListOrder::rows ? 0 : fit.place_us);
  const double power = policy.ahead ? fit.ahead_power : fit.power;
  const double second_bytes_per_us =
      policy.ahead ? fit.ahead_second_bytes_per_us : fit.second_bytes_per_us;
  const std::array of_edge = {row / fit.near_bytes_per_us, row * loads.second / second_bytes_per_us,
                              from_memory / fit.memory_bytes_per_us, issuing};
  double sum = 0;
  for (const double us : of_edge) sum += std::pow(edges * us, power);
  return fit.start_us + (policy.shares > 1 ? fit.more_shares_us : 0) +
         factor_of(fit, policy) * unevenness(graph, policy, fit, traits) * std::pow(sum, 1 / power);
}

}  // namespace tessera::ops
