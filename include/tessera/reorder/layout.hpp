// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/core/progress.hpp"
#include "tessera/reorder/permutation.hpp"

/// Orders of the vertices in which windows of consecutive rows share columns, so that more of them
/// suit tensor cores. Each takes a square graph, ignores direction, and is the same for any number
/// of threads.
namespace tessera::reorder {

/// Rows of a window, as tiles have them.
inline constexpr int row_window = 16;

struct LoaOptions {
  static constexpr int default_vertex_window = 256;

  /// How many of the next vertices, sorted by their first neighbours, compete for a place in a row
  /// window. More cost more time and find denser windows.
  int vertex_window = default_vertex_window;
  Progress progress;
};

/// HyGNN's layout optimisation (algorithm 4): row windows of 16 vertices, each filled one by one
/// with the vertex that makes the window's computing intensity largest, which is its edges over its
/// distinct columns; of equally good ones with that of highest degree.
Permutation loa(const Graph& graph, const LoaOptions& options = {});

/// Communities found by merging every vertex, lowest degree first, into the neighbour whose
/// community gains most modularity by it (Arai et al., Rabbit Order, 2016). Each community, and
/// each within it, gets consecutive numbers.
Permutation communities(const Graph& graph, const Progress& progress = {});

/// Recursive bisection (Dhulipala et al., Compressing graphs and indexes, 2016): from the order as
/// it is, rows change places between its halves while that makes the gaps between rows that share a
/// column shorter, then between the halves of each, down to row windows. Halves end where windows
/// of `layout_window` rows do.
Permutation bisection(const Graph& graph, const Progress& progress = {});

/// Edges over distinct columns, summed over windows of so many rows in that order: how often a
/// column that a window reads is used. It does not depend on the numbers of columns.
double computing_intensity(const Graph& graph, const Permutation& order, int rows = row_window);

/// Rows of the windows that orders are compared by: those of tall tiles, and about as many as the
/// rows that a processor sums at the same time and whose columns meet in its cache.
inline constexpr int layout_window = 64;

/// The densest of the order as it is, `loa`, `communities`, `loa` after `communities`, and `rcm`,
/// and of `bisection` from the densest of them.
struct Layout {
  Permutation order;
  std::string method;           ///< such as "communities, bisection"; "none": the order stays
  double intensity_before = 0;  ///< in windows of `layout_window` rows
  double intensity_after = 0;
};
Layout best_layout(const Graph& graph, const LoaOptions& options = {});

}  // namespace tessera::reorder
