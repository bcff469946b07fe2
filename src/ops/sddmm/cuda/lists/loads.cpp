// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/loads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "graph/degrees.hpp"
#include "ops/gathers.hpp"
#include "ops/random_rows.hpp"
#include "tiles/hub_windows.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

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

}  // namespace

ListLoads list_loads(const Graph& graph, const ListPolicy& policy, const CachedRows& cached) {
  if (graph.num_edges() == 0) return {};
  const Windows windows(graph);
  const std::vector<DegreeCount>& degrees = row_degrees(graph)->counts;
  const auto edges = static_cast<double>(graph.num_edges());
  const double rows = rows_with_edges(graph);
  const double targets = rows / edges;
  ListLoads loads;
  double passing = targets;
  double room = cached.second;
  double asked = asked_afar(graph);
  if (policy.order == ListOrder::panels) {
    asked = windows.distinct(list_panel_rows);
    // Of the rows of a panel each edge asks for one or the other, and rows of V pass by.
    const double panels = std::max(1.0, static_cast<double>(graph.num_rows()) / list_panel_rows);
    const double again = RandomRows(degrees, 1).missed(asked, panels * cached.near);
    loads.second = asked + std::max(targets, again);
    // All panels at work stay in the second-level cache.
    const double at_work = std::min(rows, cached.processors * rows / panels);
    room = std::max(1.0, room - at_work);
    passing -= at_work / edges;
  } else if (policy.order == ListOrder::hubs) {
    asked = graph.is_square() ? loads_by_hubs(graph, cached.near) : 1;
    loads.second = asked + targets;
  } else if (policy.shares == 0) {
    constexpr double block_edges = 64;
    loads.second =
        windows.distinct(std::max(1.0, block_edges * targets)) + targets + 1 / block_edges;
  } else {
    loads.second = windows.missed(cached.near) + targets;
  }
  const double missed = RandomRows(degrees, asked).missed(passing, room);
  loads.memory = missed > 0 ? asked * missed + targets : 0;
  return loads;
}

}  // namespace tessera::ops
