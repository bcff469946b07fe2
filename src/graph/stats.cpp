// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/stats.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <ostream>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera {
namespace {

/// What a pass over the rows finds.
struct RowTally {
  EdgeOffset min_degree = std::numeric_limits<EdgeOffset>::max();
  EdgeOffset max_degree = 0;
  EdgeOffset loops = 0;
  VertexId empty_rows = 0;
  VertexId bandwidth = 0;
};

RowTally combined(const RowTally& a, const RowTally& b) {
  return {std::min(a.min_degree, b.min_degree), std::max(a.max_degree, b.max_degree),
          a.loops + b.loops, a.empty_rows + b.empty_rows, std::max(a.bandwidth, b.bandwidth)};
}

RowTally tally_of_row(const Graph& graph, VertexId row) {
  const auto columns = graph.neighbours(row);
  const auto degree = static_cast<EdgeOffset>(columns.size());
  if (columns.empty()) return {0, 0, 0, 1, 0};
  const bool looped = std::binary_search(columns.begin(), columns.end(), row);
  // Columns rise, so the farthest is the first or the last.
  const VertexId reach = std::max(std::abs(row - columns.front()), std::abs(row - columns.back()));
  return {degree, degree, looped ? 1 : 0, 0, reach};
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

double median_degree(const Graph& graph) {
  if (graph.num_rows() == 0) return 0;
  std::vector<EdgeOffset> degrees(static_cast<std::size_t>(graph.num_rows()));
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    degrees[static_cast<std::size_t>(row)] = graph.degree(row);
  }
  const auto middle = degrees.begin() + graph.num_rows() / 2;
  std::nth_element(degrees.begin(), middle, degrees.end());
  if (graph.num_rows() % 2 == 1) return static_cast<double>(*middle);
  const EdgeOffset below = *std::max_element(degrees.begin(), middle);
  return static_cast<double>(below + *middle) / 2;
}

std::vector<std::int64_t> degree_histogram(const Graph& graph) {
  std::vector<std::int64_t> histogram;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    const auto bin =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(graph.degree(row))));
    if (bin >= histogram.size()) histogram.resize(bin + 1);
    ++histogram[bin];
  }
  return histogram;
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
  stats.min_degree = graph.num_rows() == 0 ? 0 : rows.min_degree;
  stats.max_degree = rows.max_degree;
  stats.num_empty_rows = rows.empty_rows;
  stats.bandwidth = rows.bandwidth;
  stats.num_self_loops = graph.is_square() ? rows.loops : 0;
  if (graph.num_rows() > 0) {
    stats.mean_degree =
        static_cast<double>(graph.num_edges()) / static_cast<double>(graph.num_rows());
  }
  stats.median_degree = median_degree(graph);
  stats.degree_histogram = degree_histogram(graph);

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
