// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/value_layout.hpp"

#include <string>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "cuda/pinned.hpp"
#include "tiles/cuda/windows.cuh"
#include "tiles/value_bits.hpp"

namespace tessera::tiles {
namespace {

struct PlaceLaunch {
  std::uint32_t* starts = nullptr;
  std::uint32_t* totals = nullptr;  ///< of each tile's halves

  std::int32_t height = 64;
  WindowsView windows;
  RowsView rows;
  const EdgeOffset* positions = nullptr;
  const std::int32_t* unit_offsets = nullptr;
  std::int32_t* edges = nullptr;
};

/// Entries of both halves are counted at once, those of the second in the high 16 bits.
__device__ std::uint32_t entries_of(std::uint32_t word) {
  return static_cast<std::uint32_t>(run_of(__popc(word & half_bits(0)))) |
         static_cast<std::uint32_t>(run_of(__popc(word & half_bits(1)))) << 16;
}

/// A block for each tile, a thread for each word.
__global__ void count_entries(const PlaceLaunch launch) {
  __shared__ std::uint32_t warp_totals[16];
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t own = entries_of(launch.windows.words[at]);
  std::uint32_t through = own;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(~0u, through, distance);
    if (lane >= distance) through += before;
  }
  if (lane == 31) warp_totals[threadIdx.x / 32] = through;
  __syncthreads();
  std::uint32_t before = 0;
  std::uint32_t total = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) {
    if (warp < threadIdx.x / 32) before += warp_totals[warp];
    total += warp_totals[warp];
  }
  const int first_half = units_of(static_cast<int>(total & 0xffffu)) * value_unit;
  launch.starts[at] = before + through - own + (static_cast<std::uint32_t>(first_half) << 16);
  if (threadIdx.x == 0) launch.totals[blockIdx.x] = total;
}

__device__ std::int32_t position_of(const PlaceLaunch& launch, std::int64_t row, VertexId column) {
  const EdgeOffset edge = launch.rows.first_edge_from(row, column);
  return static_cast<std::int32_t>(launch.positions != nullptr ? launch.positions[edge] : edge);
}

/// A block for each tile, a thread for each word.
__global__ void place_entries(const PlaceLaunch launch) {
  const TileInWindow tile = tile_in_window(launch.windows, blockIdx.x);
  const VertexId* const columns = launch.windows.columns + tile.first_column;
  const std::int64_t at = tile.number * blockDim.x + threadIdx.x;
  const std::uint32_t word = launch.windows.words[at];
  const std::uint32_t start = launch.starts[at];
  std::int32_t* const entries =
      launch.edges + std::int64_t{launch.unit_offsets[2 * tile.number]} * value_unit;
  for (int half = 0; half < 2; ++half) {
    std::int32_t* next = entries + (start >> (16 * half) & 0xffffu);
    for_bits(word, half, [&](int pair, int odd) {
      const ValuePlace at_place = value_place(static_cast<int>(threadIdx.x), pair, odd);
      *next++ =
          position_of(launch, tile.window * launch.height + at_place.row, columns[at_place.column]);
    });
    if (__popc(word & half_bits(half)) % 2 == 0 && (word & half_bits(half)) != 0) *next++ = -1;
    // The last word's entries are the half's last.
    if (threadIdx.x + 1 < blockDim.x) continue;
    std::int32_t* const end =
        launch.edges + std::int64_t{launch.unit_offsets[2 * tile.number + half + 1]} * value_unit;
    while (next < end) *next++ = -1;
  }
}

/// Made on the GPU. `rows` are those that were translated.
DeviceValueLayout place_values_on_device(const DeviceTiles& tiled, const cuda::DeviceRows& rows,
                                         const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const TiledGraph& host = tiled.host;
  check_value_height(host.height);
  const auto threads = static_cast<unsigned>(host.words_per_tile());
  const dim3 blocks(cuda::num_blocks(host.num_tiles(), 1));
  DeviceValueLayout layout;
  layout.starts = Buffer<std::uint32_t>(host.num_tiles() * host.words_per_tile(), place);
  Buffer<std::uint32_t> totals(host.num_tiles(), place);
  PlaceLaunch launch;
  launch.windows = view_of(tiled);
  launch.starts = layout.starts.data();
  launch.totals = totals.data();
  cuda::launch(count_entries, blocks, threads, place.stream, launch);

  {
    cuda::PinnedMemory memory(checked_bytes(totals.size(), sizeof(std::uint32_t)), place);
    std::span<const std::uint32_t> here;
    if (!totals.empty()) {
      const std::size_t bytes = checked_bytes(totals.size(), sizeof(std::uint32_t));
      here = {static_cast<const std::uint32_t*>(memory.bring(totals.data(), bytes)),
              static_cast<std::size_t>(totals.size())};
    }
    memory.wait();
    layout.unit_offsets = unit_offsets_of(here);
  }
  const std::int64_t entries = std::int64_t{layout.unit_offsets[2 * host.num_tiles()]} * value_unit;
  layout.edges = Buffer<std::int32_t>(entries, place);
  const Buffer<std::int32_t> unit_offsets = cuda::to_device(layout.unit_offsets.span(), place);
  launch.height = host.height;
  launch.rows = view_of(rows);
  launch.positions = rows.positions.data();
  launch.unit_offsets = unit_offsets.data();
  launch.edges = layout.edges.data();
  cuda::launch(place_entries, blocks, threads, place.stream, launch);
  return layout;
}

}  // namespace

std::shared_ptr<const DeviceValueLayout> device_value_layout(const Graph& graph, int height,
                                                             Side side, const Place& place) {
  const std::string what = std::string("places of values beside ") + to_string(side) +
                           " tiles of " + std::to_string(height) + " rows";
  return cuda::kept_with<DeviceValueLayout>(graph, what, place, [&] {
    const auto rows = side_rows(graph, side, place);
    const auto tiled = device_tiles(graph, {height, side, 1}, place);
    return place_values_on_device(*tiled, *rows, place);
  });
}

}  // namespace tessera::tiles
