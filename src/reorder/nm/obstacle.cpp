// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

/// Columns in groups of `size`, of which at most `most` of each are used.
struct Groups {
  std::int64_t most;
  std::int64_t size;

  /// How many of so many columns can be used.
  std::int64_t room_in(std::int64_t columns) const {
    return most * (columns / size) + std::min(most, columns % size);
  }
  /// The fewest columns of which so many can be used.
  std::int64_t columns_for(std::int64_t used) const {
    return (used - 1) / most * size + (used - 1) % most + 1;
  }
};

/// What the entries of a row use.
Groups groups_of_row(const NmPattern& pattern) { return {pattern.n, pattern.m}; }

/// What self loops use: those of neighbouring vertices stand in one meta-block, each in a column of
/// its own.
Groups groups_of_loops(const NmPattern& pattern) {
  const std::int64_t size = std::min(pattern.v, pattern.m);
  return {std::min<std::int64_t>(size, NmPattern::most_live_columns), size};
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
  const std::int64_t loops = tessera::detail::symmetry_of(both_ways).loops;
  const Groups of_row = groups_of_row(pattern), of_loops = groups_of_loops(pattern);
  if (longest > of_row.room_in(size)) {
    const std::int64_t missing = of_row.columns_for(longest) - size;
    return NmObstacle{fmt::format("a row has {} entries, and {} groups of {} columns hold {}: {} "
                                  "empty vertices would make room (pad)",
                                  longest, (size + pattern.m - 1) / pattern.m, pattern.m,
                                  of_row.room_in(size), missing),
                      missing};
  }
  if (loops > of_loops.room_in(size)) {
    return NmObstacle{fmt::format("{} vertices have self loops, and {} neighbours can have {} of "
                                  "them: leave them out (ignore_loops)",
                                  loops, of_loops.size, of_loops.most),
                      -1};
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
