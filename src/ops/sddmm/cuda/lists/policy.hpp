// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tessera::ops {

/// In which order edges are listed.
enum class ListOrder {
  rows,    ///< of CSR
  hubs,    ///< row after row, those that share sources side by side (row_order.cu)
  panels,  ///< `panel_rows` after the others, in each panel of them by source
};

struct ListPolicy {
  const char* name;
  const char* description;
  ListOrder order = ListOrder::rows;
};

/// Rows of U of a panel should stay in the first-level cache.
inline constexpr int panel_rows = 256;

/// In the order of `ListOrder`.
inline constexpr std::array<ListPolicy, 3> list_policies = {{
    {"list_rows_1", "edges listed as they lie, a share of them for each processor",
     ListOrder::rows},
    {"list_hubs_1", "edges of rows that share sources side by side, a share for each processor",
     ListOrder::hubs},
    {"list_panels_1", "edges of 256 rows by source, a share of them for each processor",
     ListOrder::panels},
}};

/// One block fills a processor.
inline constexpr int list_block_threads = 1024;
/// Eight lanes load a whole line of the cache at once, of both ends of four edges.
inline constexpr int list_lanes = 8;
inline constexpr int list_edges = 4;
inline constexpr int list_line_bytes = 16 * list_lanes;
/// Edges that a warp takes at once.
inline constexpr int list_tile = 32 / list_lanes * list_edges;

/// What sorting rows by hubs has room for.
inline constexpr int hub_bits = 23;
inline constexpr std::int64_t most_hubs = std::int64_t{1} << hub_bits;
/// Edges are counted with 31 bits, up to the end of the last share.
inline constexpr std::int64_t most_listed = std::int64_t{1} << 30;

}  // namespace tessera::ops
