// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

/// How long a row can be with N entries in every group of columns.
std::int64_t longest_possible_row(std::int64_t columns, const NmPattern& pattern) {
  return pattern.n * (columns / pattern.m) + std::min<std::int64_t>(pattern.n, columns % pattern.m);
}

/// The fewest columns that a row of this length needs.
std::int64_t columns_for_row(std::int64_t length, const NmPattern& pattern) {
  return (length - 1) / pattern.n * pattern.m + (length - 1) % pattern.n + 1;
}

/// A column of a symmetric pattern has at most N entries in M aligned rows, as a row has in M
/// columns. So a meta-block holds no more than this.
std::int64_t most_entries_of_block(const NmPattern& pattern) {
  const std::int64_t per_column =
      std::min(pattern.v, pattern.n * std::max(1, pattern.v / pattern.m));
  return std::min<std::int64_t>(pattern.n * pattern.v, NmPattern::most_live_columns * per_column);
}

}  // namespace

std::optional<NmObstacle> find_obstacle(const Graph& graph, const NmPattern& pattern) {
  pattern.validate();
  tessera::detail::require_square(graph, "N:M");
  const Graph both_ways = tessera::detail::undirected(graph);
  const std::int64_t size = both_ways.num_rows();
  EdgeOffset longest = 0;
  for (VertexId row = 0; row < size; ++row) longest = std::max(longest, both_ways.degree(row));
  if (longest > longest_possible_row(size, pattern)) {
    return NmObstacle{fmt::format("a row has {} entries, and {} groups of {} columns hold {}",
                                  longest, (size + pattern.m - 1) / pattern.m, pattern.m,
                                  longest_possible_row(size, pattern)),
                      columns_for_row(longest, pattern) - size};
  }
  const auto blocks = [&](std::int64_t of) { return (size + of - 1) / of; };
  const double room = static_cast<double>(blocks(pattern.v)) *
                      static_cast<double>(blocks(pattern.m)) *
                      static_cast<double>(most_entries_of_block(pattern));
  if (static_cast<double>(both_ways.num_edges()) > room) {
    return NmObstacle{fmt::format("{} entries do not fit: {} x {} meta-blocks hold at most {} each",
                                  both_ways.num_edges(), blocks(pattern.v), blocks(pattern.m),
                                  most_entries_of_block(pattern)),
                      -1};
  }
  return std::nullopt;
}

}  // namespace tessera::reorder
