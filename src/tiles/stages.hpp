// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiles/pieces.hpp"
#include "tiles/tile_values.hpp"

namespace tessera::tiles {

enum class StageEnd : std::uint8_t {
  none,     ///< the piece goes on
  stretch,  ///< the piece goes on with new sums, to which those up to here are added at its end
  rows,     ///< the window's sums are complete
  slot,     ///< the piece's sums are complete, but not its window's
  work,     ///< there is nothing more to do; the stage itself is empty
};

/// Some steps of a piece that are multiplied at once, in the form in which a GPU reads it: one load
/// of 16 bytes.
struct alignas(16) Stage {
  std::int32_t first_step = 0;
  std::int32_t first_tile = 0;
  std::int32_t target = 0;  ///< the window's first row, or the slot
  std::uint8_t num_steps = 0;
  std::uint8_t bit_shift : 4 = 0;      ///< where the first step stands in a word of its tile
  std::uint8_t after_stretch : 4 = 0;  ///< whether the piece has stretches before this one
  StageEnd end = StageEnd::work;
  std::uint8_t last_row = 0;  ///< of the window: its rows are 0 .. last_row
};
static_assert(sizeof(Stage) == 16);

struct StageLists {
  std::vector<Stage> stages;          ///< worker by worker, each with a last one that ends its work
  std::vector<std::int32_t> offsets;  ///< num_workers + 1
};

/// The pieces of a schedule in stages of at most `max_steps` steps, half a tile or whole ones. Sums
/// are taken over stretches of whole stages of up to `stretch_steps` steps; 0: over all of them.
StageLists make_stages(const PieceSchedule& schedule, int max_steps, int stretch_steps = 0);

/// Where the values of a stage's edges are (tiles/tile_values.hpp): one load of 16 bytes.
struct alignas(16) StageValues {
  std::int32_t first_unit = 0;
  std::int32_t num_units = 0;
  std::int32_t skipped = 0;  ///< entries of the tile that stand before the first unit
  std::int32_t reserved = 0;
};
static_assert(sizeof(StageValues) == 16);

/// Units of the stage with most of them, where stages have up to `max_steps` steps: a tile or half
/// of one.
std::int32_t most_stage_units(std::span<const std::int32_t> unit_offsets, int max_steps);

/// One for each stage of at most a tile.
std::vector<StageValues> stage_values(const StageLists& lists,
                                      std::span<const std::int32_t> unit_offsets);

}  // namespace tessera::tiles
