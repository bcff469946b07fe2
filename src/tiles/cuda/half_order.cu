// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/half_order.hpp"

#include <string>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/cuda/window_bitmap.cuh"
#include "tiles/fragment.hpp"

namespace tessera::tiles {
namespace {

struct HalvesLaunch {
  const EdgeOffset* step_offsets = nullptr;
  const EdgeOffset* tile_offsets = nullptr;
  /// Columns as they rise, and the rows that use each: none of those that fill a last step.
  const VertexId* risen = nullptr;
  const uint4* sets = nullptr;

  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;
  std::uint32_t* halves = nullptr;  ///< of each tile
};

/// Which halves use a column, as bits.
__device__ unsigned halves_of(const uint4& set) {
  return ((set.x | set.y) != 0 ? 1u : 0u) | ((set.z | set.w) != 0 ? 2u : 0u);
}

/// A block takes a window, and each thread neighbouring columns of it. In their order: both halves,
/// the first, the second, none.
__global__ __launch_bounds__(translation_threads) void order_columns(const HalvesLaunch launch) {
  constexpr unsigned order[4] = {3, 1, 2, 0};
  const std::int64_t first_column = launch.step_offsets[blockIdx.x] * step_columns;
  const auto count =
      static_cast<int>(launch.step_offsets[blockIdx.x + 1] * step_columns - first_column);
  const std::int64_t first_tile = launch.tile_offsets[blockIdx.x];
  const VertexId* const risen = launch.risen + first_column;
  const uint4* const sets = launch.sets + first_column;
  VertexId* const columns = launch.columns + first_column;
  const int share = (count + translation_threads - 1) / translation_threads;
  const int begin = min(static_cast<int>(threadIdx.x) * share, count);
  const int end = min(begin + share, count);
  int placed = 0;
  for (const unsigned wanted : order) {
    int mine = 0;
    for (int at = begin; at < end; ++at) mine += halves_of(sets[at]) == wanted ? 1 : 0;
    int total = 0;
    int place = placed + scan_block(mine, total);
    placed += total;
    for (int at = begin; at < end; ++at) {
      const uint4 set = sets[at];
      if (halves_of(set) != wanted) continue;
      columns[place] = risen[at];
      const std::int64_t tile = first_tile + place / tile_columns;
      if (wanted != 0) atomicOr(launch.halves + tile, wanted);
      const std::uint32_t parts[4] = {set.x, set.y, set.z, set.w};
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        for (std::uint32_t rows = parts[part]; rows != 0; rows &= rows - 1) {
          const int row = part * 32 + __ffs(static_cast<int>(rows)) - 1;
          const BitPlace bit = bit_place(halved_height, row, place % tile_columns);
          atomicOr(launch.words + tile * 2 * halved_height + bit.word, 1u << bit.bit);
        }
      }
      ++place;
    }
  }
}

}  // namespace

DeviceHalves order_by_halves(const Graph& graph, Side side, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  DeviceHalves halved;
  DeviceTiles& tiles = halved.tiles;
  tiles = translate_on_device(graph, {halved_height, side}, place, WindowBits::row_sets);
  const std::int64_t num_tiles = tiles.host.num_tiles();
  Buffer<VertexId> columns(tiles.columns.size(), place);
  Buffer<std::uint32_t> words(num_tiles * 2 * halved_height, place);
  Buffer<std::uint32_t> halves(num_tiles, place);
  cuda::clear(words, place);
  cuda::clear(halves, place);
  const auto windows = static_cast<unsigned>(tiles.host.num_windows());
  if (windows > 0) {
    HalvesLaunch launch;
    launch.step_offsets = tiles.step_offsets.data();
    launch.tile_offsets = tiles.tile_offsets.data();
    launch.risen = tiles.columns.data();
    launch.sets = reinterpret_cast<const uint4*>(tiles.words.data());
    launch.columns = columns.data();
    launch.words = words.data();
    launch.halves = halves.data();
    cuda::launch(order_columns, dim3(windows), translation_threads, place.stream, launch);
  }
  const Buffer<std::uint32_t> here = cuda::to_host(halves, place);
  halved.halves = Buffer<std::uint8_t>(num_tiles);
  for (std::int64_t i = 0; i < num_tiles; ++i) {
    halved.halves[i] = static_cast<std::uint8_t>(here[i]);
  }
  tiles.columns = std::move(columns);
  tiles.words = std::move(words);
  return halved;
}

std::shared_ptr<const DeviceHalves> device_halves(const Graph& graph, Side side,
                                                  const Place& place) {
  const TileOptions options = kept_tiles(graph, {halved_height, side});
  const std::string what = std::string(to_string(options.side)) + " tiles of halved windows";
  return cuda::kept_with<DeviceHalves>(graph, what, place,
                                       [&] { return order_by_halves(graph, options.side, place); });
}

}  // namespace tessera::tiles
