// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The order in which the columns of a window come to be put into quads, the same on every device.
///
/// Neighbouring columns often serve the same rows, so they are taken in turns, one from each of
/// eight equal parts of the window's sorted columns, of four where there are few. Long windows are
/// cut into segments of turns that know nothing of each other.
namespace tessera::tiles {

/// Quads of a segment that wait for columns at once: one for each lane of a warp.
inline constexpr int open_quads = 32;

/// At most, in a segment: a GPU takes the columns of one after the other.
inline constexpr int segment_columns = 512;

struct QuadOrder {
  std::int32_t num_columns = 0;
  int part_bits = 0;              ///< 2^part_bits parts
  std::int32_t num_turns = 0;     ///< columns of all parts but the last ones, which may be shorter
  std::int32_t num_segments = 0;  ///< as long as each other, but for a turn

  constexpr explicit QuadOrder(std::int32_t columns = 0)
      : num_columns(columns),
        part_bits(columns < 64 ? 2 : 3),
        num_turns(
            static_cast<std::int32_t>((std::int64_t{columns} + num_parts() - 1) >> part_bits)),
        num_segments(columns / segment_columns + (columns % segment_columns != 0 ? 1 : 0)) {}

  constexpr int num_parts() const { return 1 << part_bits; }
  /// Of a segment; after the last one, the number of turns.
  constexpr std::int32_t first_turn(std::int32_t segment) const {
    return static_cast<std::int32_t>(std::int64_t{num_turns} * segment / num_segments);
  }
  /// That a turn takes of a part; -1: none.
  constexpr std::int32_t column(std::int32_t turn, int part) const {
    const std::int64_t number = turn + std::int64_t{part} * num_turns;
    return number < num_columns ? static_cast<std::int32_t>(number) : -1;
  }
};

}  // namespace tessera::tiles
