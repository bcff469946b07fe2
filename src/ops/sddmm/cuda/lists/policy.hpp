// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tessera::ops {

/// In which order edges are listed.
enum class ListOrder {
  rows,    ///< of CSR
  hubs,    ///< row after row, those that share sources side by side (row_order.hpp)
  panels,  ///< some rows after the other, in each panel of them by source
};

/// How the blocks of a GPU share a list.
struct ListPolicy {
  ListOrder order = ListOrder::rows;
  int block_threads = 1024;
  /// Blocks for each processor, with one share of the list each; 0: as many as it takes until every
  /// warp has one tile.
  int shares = 1;
  bool ahead = false;  ///< rows are always on their way (ahead.cuh)

  friend constexpr bool operator==(const ListPolicy&, const ListPolicy&) = default;
};

/// Eight lanes load a whole line of the cache at once, of both ends of four edges.
inline constexpr int list_lanes = 8;
inline constexpr int list_edges = 4;
inline constexpr int list_line_bytes = 16 * list_lanes;
/// Edges that a warp takes at once.
inline constexpr int list_tile = 32 / list_lanes * list_edges;

/// Where rows are always on their way: 16 lanes hold a row, in which eight edges follow each other,
/// and ask for two rows ahead.
inline constexpr int ahead_lanes = 16;
inline constexpr int ahead_vectors = 2;
inline constexpr int ahead_edges = 8;
inline constexpr int ahead_depth = 2;
inline constexpr int ahead_row_bytes = 16 * ahead_lanes * ahead_vectors;

/// Rows of a panel: those of U should stay in the first-level cache.
inline constexpr int list_panel_rows = 256;

inline constexpr std::array<ListPolicy, 7> list_policies = {{
    {ListOrder::rows, 128, 0},
    {ListOrder::rows, 1024, 1},
    {ListOrder::rows, 1024, 4},
    {ListOrder::hubs, 128, 0},
    {ListOrder::hubs, 1024, 1},
    {ListOrder::panels, 1024, 1},
    {ListOrder::rows, 448, 8, true},
}};

/// What sorting rows by hubs has room for.
inline constexpr int hub_bits = 23;
inline constexpr std::int64_t most_hubs = std::int64_t{1} << hub_bits;
/// Edges are counted with 31 bits, up to the end of the last share.
inline constexpr std::int64_t most_listed = std::int64_t{1} << 30;

}  // namespace tessera::ops
