// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/dot_steps.hpp"

#include <string>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "tiles/cuda/windows.cuh"
#include "tiles/fragment.hpp"

namespace tessera::tiles {
namespace {

constexpr int block_threads = 256;

/// A block for each window, a thread for a row of a step.
__global__ __launch_bounds__(block_threads) void fill_masks(const WindowsView windows,
                                                            std::uint16_t* masks) {
  constexpr int steps_per_tile = tile_columns / step_columns;
  constexpr int words_per_tile = 2 * dot_step_rows;
  const EdgeOffset first = windows.step_offsets[blockIdx.x];
  const EdgeOffset steps = windows.step_offsets[blockIdx.x + 1] - first;
  const std::uint32_t* const words =
      windows.words + windows.tile_offsets[blockIdx.x] * words_per_tile;
  for (EdgeOffset i = threadIdx.x; i < steps * dot_step_rows; i += block_threads) {
    const auto row = static_cast<int>(i % dot_step_rows);
    const EdgeOffset step = i / dot_step_rows;
    const auto column = static_cast<int>(step % steps_per_tile) * step_columns;
    masks[(first + step) * dot_step_rows + dot_row_place(row)] =
        static_cast<std::uint16_t>(row_bits(words + step / steps_per_tile * words_per_tile,
                                            dot_step_rows, row, column, step_columns));
  }
}

/// A thread for a row of a run.
__global__ __launch_bounds__(block_threads) void fill_places(const RowsView rows,
                                                             const VertexId* columns,
                                                             const DotRun* runs,
                                                             std::int64_t num_runs,
                                                             std::uint32_t* places) {
  const std::int64_t i = cuda::thread_number();
  if (i >= num_runs * dot_step_rows) return;
  const DotRun run = runs[i / dot_step_rows];
  const auto row = static_cast<int>(i % dot_step_rows);
  const std::int64_t target = run.window() * dot_step_rows + row;
  if (target >= rows.num_rows) return;
  const VertexId first_column = columns[std::int64_t{run.first_step} * step_columns];
  places[i / dot_step_rows * dot_step_rows + dot_row_place(row)] =
      static_cast<std::uint32_t>(rows.first_edge_from(target, first_column));
}

/// Made on the GPU of tiles of 16 rows that hold all edges of `rows`; nothing waits for it.
DeviceDotSteps make_dot_steps_on_device(const DeviceTiles& tiled, const cuda::DeviceRows& rows,
                                        int run_steps, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  DeviceDotSteps made;
  made.host_runs = cut_into_runs(tiled.host, run_steps);
  const auto num_runs = std::ssize(made.host_runs);
  made.host_runs.push_back({});
  made.runs = cuda::to_device(made.host_runs, place);
  made.host_runs.pop_back();

  made.masks = Buffer<std::uint32_t>(tiled.host.num_steps() * dot_step_rows / 2, place);
  cuda::launch(fill_masks, dim3(cuda::num_blocks(tiled.host.num_windows(), 1)), block_threads,
               place.stream, view_of(tiled), reinterpret_cast<std::uint16_t*>(made.masks.data()));

  static_assert(sizeof(DotPlaces) == 2 * sizeof(std::uint32_t));
  made.places = Buffer<DotPlaces>(made.runs.size() * (dot_step_rows / 2), place);
  cuda::clear(made.places, place);
  cuda::launch(fill_places, dim3(cuda::num_blocks(num_runs * dot_step_rows, block_threads)),
               block_threads, place.stream, view_of(rows), tiled.columns.data(), made.runs.data(),
               num_runs, reinterpret_cast<std::uint32_t*>(made.places.data()));
  return made;
}

}  // namespace

std::shared_ptr<const DeviceDotSteps> device_dot_steps(const Graph& graph, int run_steps, Side side,
                                                       const Place& place) {
  const std::string what =
      "runs of " + std::to_string(run_steps) + " steps of " + to_string(side) + " tiles of 16 rows";
  return cuda::kept_with<DeviceDotSteps>(graph, what, place, [&] {
    const auto rows = side_rows(graph, side, place);
    const auto tiled = device_tiles(graph, {dot_step_rows, side, 1}, place);
    return make_dot_steps_on_device(*tiled, *rows, run_steps, place);
  });
}

}  // namespace tessera::tiles
