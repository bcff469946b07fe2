// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/dot_tiles.hpp"

#include <string>

#include "core/cuda_handles.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "tiles/cuda/windows.cuh"
#include "tiles/dot_tiles.hpp"
#include "tiles/fragment.hpp"

namespace tessera::tiles {
namespace {

constexpr int words_per_tile = 2 * dot_tile_height;
/// A warp for each strip; a thread for half a row, or for one word.
constexpr int tile_threads = 32 * dot_tile_strips;
static_assert(tile_threads == words_per_tile && tile_threads == 2 * dot_tile_height);

struct ListLaunch {
  WindowsView windows;
  RowsView rows;
  std::int32_t* first_blocks = nullptr;  ///< of each strip; before they are added up, how many
  DotTile* tiles = nullptr;
  std::uint16_t* codes = nullptr;
};

/// A strip has 32 words, a lane each.
__global__ __launch_bounds__(tile_threads) void count_code_blocks(const ListLaunch launch) {
  const std::int64_t at = cuda::thread_number();
  const auto own = static_cast<unsigned>(__popc(launch.windows.words[at]));
  const auto edges = static_cast<int>(__reduce_add_sync(~0u, own));
  if (threadIdx.x % 32 == 0) launch.first_blocks[at / 32] = code_blocks(edges);
}

/// The numbers up to a lane's, with it.
__device__ int scan_warp(int own) {
  int through = own;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int before = __shfl_up_sync(~0u, through, distance);
    if (threadIdx.x % 32 >= distance) through += before;
  }
  return through;
}

/// What the numbers of a row's edges in its strip's list lack to their places in the window.
__device__ std::int32_t shift_of(const ListLaunch& launch, const TileInWindow& tile, int row,
                                 int first_number) {
  const std::int64_t first_row = tile.window * dot_tile_height;
  if (first_row + row >= launch.rows.num_rows) return 0;
  const EdgeOffset first =
      launch.rows.first_edge_from(first_row + row, launch.windows.columns[tile.first_column]);
  return static_cast<std::int32_t>(first - launch.rows.offset(first_row) - first_number);
}

__device__ void list_strip(const ListLaunch& launch, const TileInWindow& tile,
                           const std::uint32_t* words, DotTile& to) {
  const auto strip = static_cast<int>(threadIdx.x) / 32;
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 2;
  const int first_of_lane = lane % 2 * 32;
  std::uint32_t bits =
      row_bits(words, dot_tile_height, strip * strip_rows + row, first_of_lane, 32);
  const int own = __popc(bits);
  const int through = scan_warp(own);
  const int count = __shfl_sync(~0u, through, 31);
  const std::int32_t first_block = launch.first_blocks[tile.number * dot_tile_strips + strip];
  std::uint16_t* const codes = launch.codes + std::int64_t{first_block} * code_block_edges;
  int number = through - own;
  if (lane % 2 == 0) {
    to.shifts[strip * strip_rows + row] = shift_of(launch, tile, strip * strip_rows + row, number);
  }
  for (; bits != 0; bits &= bits - 1) {
    codes[code_place(number++)] = code_of(row, first_of_lane + __ffs(static_cast<int>(bits)) - 1);
  }
  for (int k = count + lane; k < code_blocks(count) * code_block_edges; k += 32) {
    codes[code_place(k)] = 0;
  }
  if (lane == 0) {
    to.first_blocks[strip] = static_cast<std::uint32_t>(first_block);
    to.counts[strip] = static_cast<std::uint16_t>(count);
  }
}

/// A block for each tile.
__global__ __launch_bounds__(tile_threads) void fill_dot_tiles(const ListLaunch launch) {
  __shared__ std::uint32_t words[words_per_tile];
  const TileInWindow tile = tile_in_window(launch.windows, blockIdx.x);
  const auto thread = static_cast<int>(threadIdx.x);
  words[thread] = launch.windows.words[tile.number * words_per_tile + thread];
  // Columns rise within a window, but for the last, which fills its last step.
  VertexId column = 0;
  bool exists = false;
  if (thread < tile_columns && tile.first_column + thread < tile.end_column) {
    const VertexId* const at = launch.windows.columns + tile.first_column + thread;
    column = *at;
    exists = thread == 0 || at[-1] != column;
  }
  const int num_columns = __syncthreads_count(exists);
  DotTile& to = launch.tiles[tile.number];
  if (thread < tile_columns) to.columns[thread] = exists ? column : 0;
  if (thread == 0) {
    const std::int64_t first_row = tile.window * dot_tile_height;
    to.first_edge = launch.rows.offset(first_row);
    to.first_row = static_cast<VertexId>(first_row);
    to.num_columns = static_cast<std::int16_t>(num_columns);
    to.first_of_window = tile.in_window == 0 ? 1 : 0;
    to.reserved[0] = to.reserved[1] = 0;
  }
  list_strip(launch, tile, words, to);
}

/// Made on the GPU of tiles of 64 rows that hold all edges of `rows`; nothing waits for it.
DeviceDotTiles make_dot_tiles_on_device(const DeviceTiles& tiled, const cuda::DeviceRows& rows,
                                        const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const std::int64_t num_tiles = tiled.host.num_tiles();
  const std::int64_t blocks = most_code_blocks(tiled.host.num_edges, num_tiles);
  DeviceDotTiles made;
  made.tiles = Buffer<DotTile>(num_tiles, place);
  made.codes = Buffer<std::uint32_t>(blocks * code_block_words, place);
  Buffer<std::int32_t> first_blocks(num_tiles * dot_tile_strips, place);
  ListLaunch launch;
  launch.windows = view_of(tiled);
  launch.rows = view_of(rows);
  launch.first_blocks = first_blocks.data();
  launch.tiles = made.tiles.data();
  launch.codes = reinterpret_cast<std::uint16_t*>(made.codes.data());
  const dim3 grid(cuda::num_blocks(num_tiles, 1));
  cuda::launch(count_code_blocks, grid, tile_threads, place.stream, launch);
  if (num_tiles > 0) cuda::exclusive_scan(first_blocks.data(), first_blocks.size(), place);
  cuda::launch(fill_dot_tiles, grid, tile_threads, place.stream, launch);
  return made;
}

}  // namespace

std::shared_ptr<const DeviceDotTiles> device_dot_tiles(const Graph& graph, Side side,
                                                       const Place& place) {
  const std::string what = std::string("lists of edges beside ") + to_string(side) + " tiles";
  return cuda::kept_with<DeviceDotTiles>(graph, what, place, [&] {
    const auto rows = side_rows(graph, side, place);
    const auto tiled = device_tiles(graph, {dot_tile_height, side, 1}, place);
    return make_dot_tiles_on_device(*tiled, *rows, place);
  });
}

}  // namespace tessera::tiles
