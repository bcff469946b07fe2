// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/loads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/access.hpp"
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

/// The neighbour of a row that most edges have, or the row itself. Sources are taken to be used as
/// often as they use others.
class Hubs {
 public:
  explicit Hubs(const Graph& graph)
      : offsets_(graph.row_offsets().span()), sources_(graph.col_indices().span()) {}

  EdgeOffset degree(VertexId row) const {
    return offsets_[static_cast<std::size_t>(row) + 1] - offsets_[static_cast<std::size_t>(row)];
  }
  std::span<const VertexId> sources(VertexId row) const {
    return sources_.subspan(static_cast<std::size_t>(offsets_[static_cast<std::size_t>(row)]),
                            static_cast<std::size_t>(degree(row)));
  }
  VertexId of(VertexId row) const {
    VertexId hub = row;
    for (const VertexId source : sources(row)) {
      const EdgeOffset more = degree(source) - degree(hub);
      if (more > 0 || (more == 0 && source < hub)) hub = source;
    }
    return hub;
  }

 private:
  std::span<const EdgeOffset> offsets_;
  std::span<const VertexId> sources_;
};

/// How often each of these sources is used, as degrees.
std::vector<DegreeCount> counted_uses(std::vector<VertexId>& sources) {
  std::sort(sources.begin(), sources.end());
  std::vector<std::int64_t> rows;
  for (auto at = sources.begin(); at != sources.end();) {
    const auto end = std::upper_bound(at, sources.end(), *at);
    const auto uses = static_cast<std::size_t>(end - at);
    if (rows.size() <= uses) rows.resize(uses + 1);
    ++rows[uses];
    at = end;
  }
  std::vector<DegreeCount> counts;
  for (std::size_t uses = 1; uses < rows.size(); ++uses) {
    if (rows[uses] > 0) counts.push_back({static_cast<EdgeOffset>(uses), rows[uses]});
  }
  return counts;
}

/// Rows that stand side by side, as many as are looked at: those of a hub, then those of other hubs
/// that have the same hub.
class RowsBeside {
 public:
  RowsBeside(const Hubs& hubs, VertexId row, std::size_t first) : hubs_(hubs), first_(first) {
    const VertexId hub = hubs.of(row);
    add_rows_of(hub);
    const VertexId above = hubs.of(hub);
    for (const VertexId other : hubs.sources(above)) {
      if (rows_ >= enough) return;
      if (other > hub && hubs.of(other) == above) add_rows_of(other);
    }
  }

  /// Rows of V that a cache of so many rows does not have, for each edge.
  double loads(double near) {
    const auto edges = static_cast<double>(asked_.size());
    if (edges == 0) return 1;
    const std::vector<DegreeCount> uses = counted_uses(asked_);
    double distinct = 0;
    for (const DegreeCount& each : uses) distinct += static_cast<double>(each.rows);
    const double again = RandomRows(uses, 1).missed(static_cast<double>(rows_) / edges, near);
    return std::max(again, distinct / edges);
  }

 private:
  static constexpr std::size_t enough = 32;

  void add_rows_of(VertexId hub) {
    const std::span<const VertexId> beside = hubs_.sources(hub);
    const std::size_t step = std::max<std::size_t>(1, beside.size() / enough);
    for (std::size_t i = first_ % step; i < beside.size() && rows_ < enough; i += step) {
      if (hubs_.of(beside[i]) != hub) continue;
      const std::span<const VertexId> sources = hubs_.sources(beside[i]);
      asked_.insert(asked_.end(), sources.begin(), sources.end());
      ++rows_;
    }
  }

  const Hubs& hubs_;
  std::size_t first_;
  std::vector<VertexId> asked_;
  std::size_t rows_ = 0;
};

/// Rows of V that the first-level cache does not have where rows stand with those of the same hub.
/// Kept with the graph.
double loads_by_hubs(const Graph& graph, double near) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    constexpr int samples = 12;
    const Hubs hubs(graph);
    const auto offsets = graph.row_offsets().span();
    double loads = 0;
    for (int i = 0; i < samples; ++i) {
      const EdgeOffset edge = graph.num_edges() * (2 * i + 1) / (2 * samples);
      const auto row = std::upper_bound(offsets.begin(), offsets.end(), edge) - offsets.begin() - 1;
      loads +=
          RowsBeside(hubs, static_cast<VertexId>(row), static_cast<std::size_t>(i)).loads(near);
    }
    return std::make_shared<double>(loads / samples);
  };
  const std::string key = "loads of " + std::to_string(static_cast<int>(near)) + " rows by hubs";
  return *std::static_pointer_cast<const double>(detail::GraphAccess::derived(graph, key, make));
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
    asked = graph.is_square() ? loads_by_hubs(graph, cached.near) : 1;
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
