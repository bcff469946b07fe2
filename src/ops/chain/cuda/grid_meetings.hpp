// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Where the blocks of a grid that runs a chain tell each other sums of columns.
namespace tessera::ops {

inline constexpr int chain_width = 16;  ///< columns of the widest matrix
inline constexpr int most_grid_chain_blocks = 128;

/// Two sums of a column, written and read as one: a reader knows by the last bits of the second
/// whether both are those of the meeting that it waits for. Nobody waits for anything else then.
struct alignas(16) ColumnSums {
  std::uint64_t first, second;
};

/// All 0 at first; nothing else writes here, so that what lies in a place is of the last meeting
/// but one until it is of the last.
struct GridMeetings {
  alignas(16) std::uint32_t count;  ///< of all launches before
  ColumnSums sums[2][most_grid_chain_blocks][chain_width];
};

}  // namespace tessera::ops
