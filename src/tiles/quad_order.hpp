// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The order in which the columns of a window come to be put into quads, the same on every device.
///
/// Neighbouring columns often serve the same rows, so they are taken in turns, one from each of
/// eight parts of the window's sorted columns, of which the first ones may have one more than the
/// others. Long windows are cut into segments of turns that know nothing of each other.
namespace tessera::tiles {

/// Quads of a segment that wait for columns at once: one for each lane of a warp.
inline constexpr int open_quads = 32;

inline constexpr int order_parts = 8;

/// At most, in a segment: a GPU takes the columns of one after the other.
inline constexpr int segment_columns = 384;

struct QuadOrder {
  std::int32_t num_columns = 0;

  constexpr std::int32_t num_turns() const { return units_of(order_parts); }
  /// As long as each other, but for a turn.
  constexpr std::int32_t num_segments() const { return units_of(segment_columns); }
  /// Of a segment in the order; of the one after the last, the number of columns.
  constexpr std::int32_t first_place(std::int32_t segment) const {
    if (segment == num_segments()) return num_columns;
    const std::int64_t turn = std::int64_t{num_turns()} * segment / num_segments();
    return static_cast<std::int32_t>(turn * order_parts);
  }
  /// At a place in the order.
  constexpr std::int32_t column(std::int32_t place) const {
    const std::int32_t turn = place / order_parts;
    const std::int32_t part = place % order_parts;
    const std::int32_t longer_parts = num_columns % order_parts;
    return part * (num_columns / order_parts) + (part < longer_parts ? part : longer_parts) + turn;
  }

 private:
  constexpr std::int32_t units_of(int columns) const {
    return num_columns / columns + (num_columns % columns != 0 ? 1 : 0);
  }
};

}  // namespace tessera::tiles
