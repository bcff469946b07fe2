// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/places.hpp"

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"
#include "tiles/fragment.hpp"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

/// Rows r and r + 8 stand side by side.
__device__ int side_by_side(int row) { return row % 8 * 2 + row / 8; }

/// The bits of a row in one step of a tile, the first column in the lowest.
__device__ std::uint16_t row_bits(const std::uint32_t* tile, int row, int step) {
  std::uint32_t bits = 0;
  for (int column = 0; column < short_dot_columns; ++column) {
    const tiles::BitPlace at =
        tiles::bit_place(short_dot_rows, row, step * short_dot_columns + column);
    bits |= (tile[at.word] >> at.bit & 1u) << column;
  }
  return static_cast<std::uint16_t>(bits);
}

/// A block for each window, a thread for a row of a step.
__global__ __launch_bounds__(block_threads) void fill_masks(const EdgeOffset* step_offsets,
                                                            const EdgeOffset* tile_offsets,
                                                            const std::uint32_t* words,
                                                            std::uint16_t* masks) {
  constexpr int steps_per_tile = tiles::tile_columns / tiles::step_columns;
  constexpr int words_per_tile = 2 * short_dot_rows;
  const EdgeOffset first = step_offsets[blockIdx.x];
  const EdgeOffset steps = step_offsets[blockIdx.x + 1] - first;
  const std::uint32_t* const tile = words + tile_offsets[blockIdx.x] * words_per_tile;
  for (EdgeOffset i = threadIdx.x; i < steps * short_dot_rows; i += block_threads) {
    const auto row = static_cast<int>(i % short_dot_rows);
    const EdgeOffset step = i / short_dot_rows;
    masks[(first + step) * short_dot_rows + side_by_side(row)] =
        row_bits(tile + step / steps_per_tile * words_per_tile, row,
                 static_cast<int>(step % steps_per_tile));
  }
}

struct PlacesLaunch {
  std::int64_t num_runs = 0;
  const DotRun* runs = nullptr;
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  const VertexId* columns = nullptr;
  std::uint32_t* places = nullptr;
};

__device__ EdgeOffset offset_at(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? offsets.narrow[row] : offsets.wide[row];
}

/// A thread for a row of a run: its first edge that is not left of the run's first column.
__global__ __launch_bounds__(block_threads) void fill_places(const PlacesLaunch launch) {
  const std::int64_t i = cuda::thread_number();
  if (i >= launch.num_runs * short_dot_rows) return;
  const DotRun run = launch.runs[i / short_dot_rows];
  const auto row = static_cast<int>(i % short_dot_rows);
  const std::int64_t target =
      std::int64_t{run.window_and_steps >> DotRun::step_bits} * short_dot_rows + row;
  if (target >= launch.num_rows) return;
  launch.places[i / short_dot_rows * short_dot_rows + side_by_side(row)] =
      static_cast<std::uint32_t>(cuda::lower_bound(
          launch.indices, offset_at(launch.offsets, target), offset_at(launch.offsets, target + 1),
          launch.columns[std::int64_t{run.first_step} * short_dot_columns]));
}

}  // namespace

Buffer<std::uint32_t> step_masks(const tiles::DeviceTiles& tiles, const Place& place) {
  const Buffer<EdgeOffset> step_offsets = cuda::to_device(tiles.host.step_offsets.span(), place);
  const Buffer<EdgeOffset> tile_offsets = cuda::to_device(tiles.host.tile_offsets.span(), place);
  Buffer<std::uint32_t> masks(tiles.host.num_steps() * short_dot_rows / 2, place);
  cuda::launch(fill_masks, dim3(cuda::num_blocks(tiles.host.num_windows(), 1)), block_threads,
               place.stream, step_offsets.data(), tile_offsets.data(), tiles.words.data(),
               reinterpret_cast<std::uint16_t*>(masks.data()));
  return masks;
}

Buffer<DotPlaces> run_places(const cuda::DeviceRows& rows, const Buffer<VertexId>& columns,
                             const Buffer<DotRun>& runs, const Place& place) {
  static_assert(sizeof(DotPlaces) == 2 * sizeof(std::uint32_t));
  Buffer<DotPlaces> places(runs.size() * short_dot_rows / 2, place);
  cuda::clear(places, place);
  PlacesLaunch launch;
  launch.num_runs = runs.size() - 1;
  launch.runs = runs.data();
  launch.num_rows = rows.num_rows;
  launch.offsets = rows.offsets();
  launch.indices = rows.indices.data();
  launch.columns = columns.data();
  launch.places = reinterpret_cast<std::uint32_t*>(places.data());
  cuda::launch(fill_places, dim3(cuda::num_blocks(launch.num_runs * short_dot_rows, block_threads)),
               block_threads, place.stream, launch);
  return places;
}

}  // namespace tessera::ops
