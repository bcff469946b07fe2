// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/device_traits.hpp"

namespace tessera::ops {

/// How a block shares the edges of a piece of a panel: groups of `lanes` lanes take as many edges
/// each, and a lane holds `vectors` vectors of 16 bytes of a row of V, which is as long as all of
/// them together. The rows of V of `depth` edges are on their way.
struct PanelPolicy {
  int lanes = 16;
  int vectors = 2;
  int depth = 4;

  constexpr int row_bytes() const { return 16 * lanes * vectors; }
  friend constexpr bool operator==(const PanelPolicy&, const PanelPolicy&) = default;
};

/// Three blocks share a processor: while one waits for its rows of U, the others multiply.
inline constexpr int panel_block_threads = 256;
inline constexpr int panel_blocks = 3;
inline constexpr int panel_step_edges = 8;  ///< of a group at each step

/// For rows of 128 bytes to a kilobyte.
inline constexpr std::array<PanelPolicy, 5> panel_policies = {{
    {8, 1, 4},
    {16, 1, 4},
    {8, 3, 1},
    {16, 2, 4},
    {16, 4, 1},
}};

/// What an edge of a panel keeps of its target and of its place: nine bits and the other 23.
inline constexpr int most_panel_rows = 512;
inline constexpr std::int64_t most_panel_edges = std::int64_t{1} << 23;

/// Rows of U that the shared memory of a block has room for.
inline int panel_rows(int row_bytes, const DeviceTraits& traits) {
  constexpr std::int64_t kept_by_the_driver = 1024;
  const std::int64_t bytes = traits.shared_bytes_per_processor / panel_blocks - kept_by_the_driver;
  return static_cast<int>(std::clamp<std::int64_t>(bytes / row_bytes, 1, most_panel_rows));
}

}  // namespace tessera::ops
