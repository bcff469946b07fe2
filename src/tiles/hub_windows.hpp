// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::tiles {

/// Rows with the same hub: the vertex with the most edges, the first of equal ones, among a row and
/// its columns. They stand side by side where rows are ordered by their hubs. Long rows are taken
/// for hubs of their own, and do not count.
struct HubWindow {
  std::int32_t edges;
  std::int32_t columns;  ///< distinct ones
};

/// So many hubs are looked at: of the columns of edges that are evenly spread.
inline constexpr int sampled_hubs = 64;
/// Of each hub so many columns, evenly spread: those that are rows of its window count.
inline constexpr int sampled_hub_columns = 64;
inline constexpr EdgeOffset longest_hub_row = 4096;
/// Columns that are the same modulo this count once: few of a window are, and a GPU marks them in
/// shared memory.
inline constexpr VertexId hub_column_places = 1 << 18;

/// What cost models ask of a square graph, whose columns are rows, too; the same for the same
/// graph. Kept with it. Columns are taken to be used as often as their rows use others.
std::shared_ptr<const std::vector<HubWindow>> sampled_hub_windows(const Graph& graph);

/// From now on `sampled_hub_windows` returns this.
void know_hub_windows(const Graph& graph, std::vector<HubWindow> windows);

}  // namespace tessera::tiles
