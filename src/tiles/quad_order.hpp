// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The order in which the columns of a window come to be put into quads, the same on every device.
///
/// Neighbouring columns often serve the same rows, so they are taken in turns of four, one from
/// each quarter of the window's sorted columns. Long windows are cut into segments of turns that
/// know nothing of each other.
namespace tessera::tiles {

/// Quads of a segment that wait for columns at once: one for each lane of a warp.
inline constexpr int open_quads = 32;

inline constexpr int segment_turns = 1024;

struct QuadOrder {
  std::int32_t num_columns = 0;

  constexpr std::int32_t num_turns() const {
    return num_columns / 4 + (num_columns % 4 != 0 ? 1 : 0);
  }
  constexpr std::int32_t num_segments() const {
    return (num_turns() + segment_turns - 1) / segment_turns;
  }
  /// The turn after the last one of a segment.
  constexpr std::int32_t segment_end(std::int32_t segment) const {
    const std::int32_t end = (segment + 1) * segment_turns;
    return end < num_turns() ? end : num_turns();
  }
  /// Of a quarter; -1 where the last quarter is shorter than the others.
  constexpr std::int32_t column(std::int32_t turn, std::int32_t quarter) const {
    const std::int64_t number = turn + std::int64_t{quarter} * num_turns();
    return number < num_columns ? static_cast<std::int32_t>(number) : -1;
  }
};

}  // namespace tessera::tiles
