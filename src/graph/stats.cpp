// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/stats.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ostream>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"

#include "graph/degrees.hpp"
#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera {
namespace {

/// What a pass over the rows finds.
struct RowTally {
  EdgeOffset loops = 0;
  VertexId bandwidth = 0;
};

RowTally combined(const RowTally& a, const RowTally& b) {
  return {a.loops + b.loops, std::max(a.bandwidth, b.bandwidth)};
}

RowTally tally_of_row(const Graph& graph, VertexId row) {
  const auto columns = graph.neighbours(row);
  if (columns.empty()) return {};
  const bool looped = std::binary_search(columns.begin(), columns.end(), row);
  // Columns rise, so the farthest is the first or the last.
  const VertexId reach = std::max(std::abs(row - columns.front()), std::abs(row - columns.back()));
  return {looped ? 1 : 0, reach};
}

RowTally tally_rows(const Graph& graph) {
  const auto tally = [&](std::int64_t begin, std::int64_t end) {
    RowTally sum;
    for (std::int64_t row = begin; row < end; ++row) {
      sum = combined(sum, tally_of_row(graph, static_cast<VertexId>(row)));
    }
    return sum;
  };
  return parallel_reduce(graph.num_rows(), even_grain(graph.num_rows()), RowTally{}, tally,
                         combined);
}

void describe_degrees(const DegreeStatistics& degrees, GraphStats& stats) {
  if (degrees.counts.empty()) return;
  const DegreeCount& lowest = degrees.counts.front();
  stats.min_degree = lowest.degree;
  stats.max_degree = degrees.longest();
  stats.mean_degree = degrees.mean();
  if (lowest.degree == 0) stats.num_empty_rows = static_cast<VertexId>(lowest.rows);
  // Of the row, or the two rows, in the middle.
  std::int64_t before = 0;
  for (const auto& [degree, rows] : degrees.counts) {
    for (const std::int64_t middle : {(degrees.num_rows - 1) / 2, degrees.num_rows / 2}) {
      const bool is_here = middle >= before && middle < before + rows;
      stats.median_degree += is_here ? static_cast<double>(degree) / 2 : 0;
    }
    before += rows;
    const auto bin = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(degree)));
    if (bin >= stats.degree_histogram.size()) stats.degree_histogram.resize(bin + 1);
    stats.degree_histogram[bin] += rows;
  }
}

void describe_components(const Graph& graph, GraphStats& stats) {
  const std::vector<VertexId> component = connected_components(graph);
  if (component.empty()) return;
  stats.num_components = *std::max_element(component.begin(), component.end()) + 1;
  std::vector<VertexId> sizes(static_cast<std::size_t>(stats.num_components));
  for (const VertexId label : component) ++sizes[static_cast<std::size_t>(label)];
  stats.largest_component = *std::max_element(sizes.begin(), sizes.end());
  // Alone in its component, a vertex can have no edge but a self loop.
  for (std::size_t vertex = 0; vertex < component.size(); ++vertex) {
    const bool alone = sizes[static_cast<std::size_t>(component[vertex])] == 1;
    const bool is_row = static_cast<std::int64_t>(vertex) < graph.num_rows();
    const bool looped = is_row && graph.degree(static_cast<VertexId>(vertex)) > 0;
    stats.num_isolated += alone && !looped ? 1 : 0;
  }
}

}  // namespace

GraphStats compute_stats(const Graph& graph) {
  detail::require_whole(graph);
  GraphStats stats;
  stats.num_rows = graph.num_rows();
  stats.num_cols = graph.num_cols();
  stats.num_edges = graph.num_edges();

  const RowTally rows = tally_rows(graph);
  stats.bandwidth = rows.bandwidth;
  stats.num_self_loops = graph.is_square() ? rows.loops : 0;
  describe_degrees(*row_degrees(graph), stats);

  if (graph.is_square()) {
    const detail::Symmetry symmetry = detail::symmetry_of(graph);
    stats.symmetric_pattern = symmetry.of_pattern();
    stats.symmetric_values = symmetry.of_values();
    // A one-way edge counts for itself and for the way back.
    stats.edges_symmetrised_loop_free = graph.num_edges() - symmetry.loops + symmetry.one_way;
  } else {
    stats.edges_symmetrised_loop_free = -1;
  }
  describe_components(graph, stats);
  return stats;
}

std::ostream& operator<<(std::ostream& out, const GraphStats& stats) {
  const auto line = [&](const char* name, const std::string& value) {
    out << fmt::format("{:<18}{}\n", name, value);
  };
  const bool square = stats.num_rows == stats.num_cols;
  if (square) {
    line("vertices", fmt::format("{}", stats.num_rows));
  } else {
    line("shape", fmt::format("{} targets x {} sources", stats.num_rows, stats.num_cols));
  }
  line("edges", fmt::format("{}, {} of them self loops", stats.num_edges, stats.num_self_loops));
  if (square) line("symmetrised", fmt::format("{}", stats.edges_symmetrised_loop_free));
  line("degree", fmt::format("{} to {}, mean {:.4g}, median {:.4g}", stats.min_degree,
                             stats.max_degree, stats.mean_degree, stats.median_degree));
  line("without edges",
       fmt::format("{} vertices, {} rows", stats.num_isolated, stats.num_empty_rows));
  line("components",
       fmt::format("{}, the largest of {}", stats.num_components, stats.largest_component));
  line("symmetric", stats.symmetric_values    ? "yes"
                    : stats.symmetric_pattern ? "pattern only"
                                              : "no");
  line("bandwidth", fmt::format("{}", stats.bandwidth));
  return out;
}

}  // namespace tessera
