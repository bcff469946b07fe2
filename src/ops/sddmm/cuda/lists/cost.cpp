// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "ops/plan/cost_fits.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "tiles/hub_windows.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct ListCoefficients {
  double start_us;  ///< until the first row is asked for
  /// What rows take on their way to registers: from the first-level cache, from the second, and
  /// from memory.
  double near_bytes_per_us;
  double second_bytes_per_us;
  double memory_bytes_per_us = streamed_bytes_per_us;
  double near_bytes;    ///< of the first-level cache
  double second_bytes;  ///< that the second-level cache keeps of what was used last
  double scattered;     ///< how many times as long rows that stand with their hubs take from memory
  /// Instructions of an edge, those of each feature that has to be widened, and finding the place
  /// of a result where edges are listed in another order.
  double edge_us;
  double widened_us;
  double place_us;
  double power;         ///< the slowest of all counts, and some of the others
  double uneven_share;  ///< of what the longest share takes more than their mean

  void scale(DeviceRatio ratio) {
    near_bytes_per_us *= ratio.processors;
    second_bytes_per_us *= ratio.processors;
    memory_bytes_per_us *= ratio.memory;
    near_bytes *= ratio.l1;
    second_bytes *= ratio.l2;
    edge_us /= ratio.processors;
    widened_us /= ratio.processors;
    place_us /= ratio.processors;
  }
};

constexpr Fitted<ListCoefficients> coefficients = {
    fitted_on_h200("2026-11-18",
                   "46 graphs of 7,575 to 1.7 M vertices, most of them at 128 features, in fp32 "
                   "and bf16; 13 of them at 64 or 256"),
    {.start_us = 7.9,
     .near_bytes_per_us = 13.4e6,
     .second_bytes_per_us = 15.7e6,
     .near_bytes = 200e3,
     .second_bytes = 40e6,
     .scattered = 1.05,
     .edge_us = 11.2e-6,
     .widened_us = 4.9e-8,
     .place_us = 5.1e-6,
     .power = 1.77,
     .uneven_share = 0.42}};

/// How many rows caches hold.
struct CachedRows {
  double near = 0;    ///< the first-level cache of a processor
  double second = 0;  ///< the second-level cache
  double processors = 0;
};

/// Rows of both ends that the caches do not have, for each edge of a list.
struct ListLoads {
  double second = 0;  ///< come from the second-level cache or from memory
  double memory = 0;  ///< come from memory
};

/// Rows that have edges.
double rows_with_edges(const Graph& graph) {
  return static_cast<double>(row_degrees(graph)->rows_beyond(0));
}

/// Of a window's distinct sources, the share of those shared by its rows that a cache with so much
/// room has: those stay longest that most rows share.
double kept_share(double room, double sources) {
  return std::pow(std::min(1.0, room / std::max(1.0, sources)), 0.6);
}

/// Windows of rows that follow each other, and their distinct sources.
class Windows {
 public:
  explicit Windows(const Graph& graph)
      : offsets_(graph.row_offsets().span()),
        sampled_(tiles::sampled_columns(graph, tiles::Side::forward)) {
    const auto edges = static_cast<double>(graph.num_edges());
    for (std::size_t i = 1; i < heights.size(); ++i) {
      const double columns = tiles::sample_windows(graph, heights[i], tiles::Side::forward).columns;
      distinct_[i] = std::min(distinct_[i - 1], columns / edges);
    }
  }

  /// Distinct sources of windows of so many rows, for each edge: between what is known.
  double distinct(double rows) const {
    const auto next = std::lower_bound(heights.begin(), heights.end(), rows);
    if (next == heights.begin()) return distinct_.front();
    if (next == heights.end()) return distinct_.back();
    const std::size_t i = static_cast<std::size_t>(next - heights.begin());
    const double share =
        std::log(rows / heights[i - 1]) / std::log(double(heights[i]) / heights[i - 1]);
    return distinct_[i - 1] + share * (distinct_[i] - distinct_[i - 1]);
  }

  /// Sources that a cache with room for so many does not have, for each edge.
  double missed(double room) const {
    constexpr int height = tiles::chosen_windows.height;
    const std::int64_t windows = (num_rows() + height - 1) / height;
    const auto count = static_cast<std::int64_t>(sampled_->size());
    double missed = 0, seen = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = windows * i / count * height;
      const double edges = edges_of(first, first + height);
      if (edges == 0) continue;
      const double columns = (*sampled_)[static_cast<std::size_t>(i)];
      const double around = edges_of(first, windows * (i + 1) / count * height);
      missed += around * missed_of(edges / height, columns / edges / distinct(height), room);
      seen += around;
    }
    return seen == 0 ? 1 : missed / seen;
  }

 private:
  std::int64_t num_rows() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  double edges_of(std::int64_t first, std::int64_t end) const {
    return static_cast<double>(offsets_[static_cast<std::size_t>(std::min(num_rows(), end))] -
                               offsets_[static_cast<std::size_t>(first)]);
  }
  /// Where rows have such a degree, and so many times the distinct sources of others: in windows
  /// of the height that shares most.
  double missed_of(double degree, double times, double room) const {
    double least = 1;
    for (double rows = 1; rows <= heights.back(); rows *= 2) {
      const double distinct_sources = std::min(1.0, times * distinct(rows));
      const double kept = kept_share(room, distinct_sources * degree * rows);
      least = std::min(least, 1 - kept * (1 - distinct_sources));
    }
    return least;
  }

  static constexpr std::array heights = {1, 8, 16, 64, 128, 256};
  std::span<const EdgeOffset> offsets_;
  std::shared_ptr<const std::vector<std::int32_t>> sampled_;
  std::array<double, heights.size()> distinct_ = {1, 1, 1, 1, 1, 1};
};

/// Rows of V that the first-level cache does not have where rows stand with those of the same hub.
double loads_by_hubs(const Graph& graph, double near) {
  double loads = 0;
  const auto windows = tiles::sampled_hub_windows(graph);
  for (const tiles::HubWindow& each : *windows) {
    const double shared = each.edges == 0 ? 0 : 1 - double(each.columns) / each.edges;
    loads += 1 - shared * kept_share(near, each.columns);
  }
  return loads / static_cast<double>(windows->size());
}

/// Estimated from windows of the graph and from the degrees of its rows: a plan does not bring the
/// edges of a graph that lies on a GPU.
ListLoads list_loads(const Graph& graph, ListOrder order, const CachedRows& cached) {
  if (graph.num_edges() == 0) return {};
  const auto edges = static_cast<double>(graph.num_edges());
  const std::vector<DegreeCount>& degrees = row_degrees(graph)->counts;
  const double rows = rows_with_edges(graph);
  const double targets = rows / edges;
  ListLoads loads;
  double asked = asked_afar(graph);
  double passing = targets;
  double room = cached.second;
  switch (order) {
    case ListOrder::rows: loads.second = Windows(graph).missed(cached.near) + targets; break;
    case ListOrder::hubs:
      asked = graph.is_square() ? loads_by_hubs(graph, cached.near) : 1;
      loads.second = asked + targets;
      break;
    case ListOrder::panels: {
      asked = Windows(graph).distinct(panel_rows);
      // Of the rows of a panel each edge asks for one or the other, and rows of V pass by.
      const double panels = std::max(1.0, static_cast<double>(graph.num_rows()) / panel_rows);
      const double again = RandomRows(degrees, 1).missed(asked, panels * cached.near);
      loads.second = asked + std::max(targets, again);
      // All panels at work stay in the second-level cache.
      const double at_work = std::min(rows, cached.processors * rows / panels);
      room = std::max(1.0, room - at_work);
      passing -= at_work / edges;
      break;
    }
  }
  const double missed = RandomRows(degrees, asked).missed(passing, room);
  loads.memory = missed > 0 ? asked * missed + targets : 0;
  return loads;
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

const CostFit& fit_of(ListOrder order) {
  switch (order) {
    case ListOrder::hubs: return cost_fits::sddmm_list_hubs;
    case ListOrder::panels: return cost_fits::sddmm_list_panels;
    default: return cost_fits::sddmm_list_rows;
  }
}

}  // namespace

double predict_list_us(const SddmmProblem& problem, const ListPolicy& policy,
                       const DeviceTraits& traits) {
  const ListCoefficients fit = coefficients.on(traits);
  const Graph& graph = problem.graph;
  const bool by_hubs = policy.order == ListOrder::hubs;
  const CostFit& of_order = fit_of(policy.order);
  if (graph.num_edges() == 0 || problem.features == 0) return fitted_us(of_order, fit.start_us);
  const PassSizes sizes = sizes_of(problem);
  const double row = sizes.row_bytes;
  const bool placed = policy.order != ListOrder::rows;
  const ListLoads loads = list_loads(
      graph, policy.order,
      {fit.near_bytes / row, fit.second_bytes / row, static_cast<double>(traits.processors)});
  const double listed = (placed ? 12 : 8) + sizes.element_bytes;
  const double from_memory =
      loads.memory > 0 ? row * (by_hubs ? fit.scattered : 1) * loads.memory + listed : 0;
  const double issuing = fit.edge_us + (sizes.half() ? sizes.features * fit.widened_us : 0) +
                         (placed ? fit.place_us : 0);
  const double us =
      side_by_side({sizes.edges * (row / fit.near_bytes_per_us),
                    sizes.edges * (row * loads.second / fit.second_bytes_per_us),
                    sizes.edges * (from_memory / fit.memory_bytes_per_us), sizes.edges * issuing},
                   fit.power);
  const double uneven =
      by_hubs ? 1 : 1 + fit.uneven_share * (unevenness(graph, traits.processors) - 1);
  return fitted_us(of_order, fit.start_us + uneven * us);
}

}  // namespace tessera::ops
