// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/loads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "graph/degrees.hpp"
#include "ops/gathers.hpp"
#include "ops/random_rows.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

/// Rows that have edges.
double rows_with_edges(const Graph& graph) {
  return static_cast<double>(row_degrees(graph)->rows_beyond(0));
}

/// The distinct sources of windows of some rows, for each edge, and of one window.
struct Window {
  double rows = 1;
  double distinct = 1;
  double sources = 0;
};

/// Between what is known of windows, from single rows on.
class Windows {
 public:
  explicit Windows(const Graph& graph) {
    const auto rows = static_cast<double>(graph.num_rows());
    const auto edges = static_cast<double>(graph.num_edges());
    windows_[0] = {1, 1, edges / std::max(1.0, rows)};
    for (std::size_t i = 1; i < windows_.size(); ++i) {
      const double columns = tiles::sample_windows(graph, heights[i], tiles::Side::forward).columns;
      const double of_one = columns / std::max(1.0, rows / heights[i]);
      windows_[i] = {double(heights[i]), std::min(windows_[i - 1].distinct, columns / edges),
                     std::max(windows_[i - 1].sources, of_one)};
    }
  }

  /// Distinct sources per edge of windows that have so many sources.
  double of_sources(double sources) const { return between(&Window::sources, sources); }
  double of_rows(double rows) const { return between(&Window::rows, rows); }

 private:
  double between(double Window::*size, double wanted) const {
    const auto next = std::find_if(windows_.begin(), windows_.end(),
                                   [&](const Window& each) { return each.*size >= wanted; });
    if (next == windows_.begin()) return windows_.front().distinct;
    if (next == windows_.end()) return windows_.back().distinct;
    const Window& before = *(next - 1);
    const double share =
        std::log(wanted / (before.*size)) / std::log((*next).*size / (before.*size));
    return before.distinct + share * (next->distinct - before.distinct);
  }

  static constexpr std::array heights = {1, 8, 16, 64, 128, 256};
  std::array<Window, heights.size()> windows_;
};

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
    asked = windows.of_rows(list_panel_rows);
    // Of the rows of a panel each edge asks for one or the other, and rows of V pass by.
    const double panels = std::max(1.0, static_cast<double>(graph.num_rows()) / list_panel_rows);
    const double again = RandomRows(degrees, 1).missed(asked, panels * cached.near);
    loads.second = asked + std::max(targets, again);
    // All panels at work stay in the second-level cache.
    const double at_work = std::min(rows, cached.processors * rows / panels);
    room = std::max(1.0, room - at_work);
    passing -= at_work / edges;
  } else if (policy.order == ListOrder::hubs) {
    // Rows that share their hub share more than rows at random, whatever order the graph came in.
    constexpr double of_hubs = 0.79;
    asked = graph.is_square() ? of_hubs * RandomRows(degrees, 1).missed(targets, cached.near) : 1;
    loads.second = asked + targets;
  } else if (policy.shares == 0) {
    constexpr double block_edges = 64;
    loads.second =
        windows.of_rows(std::max(1.0, block_edges * targets)) + targets + 1 / block_edges;
  } else {
    loads.second = windows.of_sources(cached.near) + targets;
  }
  const double missed = RandomRows(degrees, asked).missed(passing, room);
  loads.memory = missed > 0 ? asked * missed + targets : 0;
  return loads;
}

}  // namespace tessera::ops
