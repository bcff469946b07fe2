// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/quad_values.hpp"

#include <string>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "tiles/cuda/windows.cuh"
#include "tiles/quad_fragment.hpp"

namespace tessera::tiles {
namespace {

struct QuadValuesLaunch {
  std::int64_t num_registers = 0;  ///< of all lanes, strips and steps
  int strips = 1;
  std::int64_t num_windows = 0;
  const EdgeOffset* step_offsets = nullptr;
  const EdgeOffset* tile_offsets = nullptr;
  const VertexId* columns = nullptr;
  const std::uint32_t* words = nullptr;
  RowsView rows;
  const EdgeOffset* positions = nullptr;
  int2* edges = nullptr;
};

/// A thread for each register.
__global__ void place_registers(const QuadValuesLaunch launch) {
  const std::int64_t number = cuda::thread_number();
  if (number >= launch.num_registers) return;
  const std::int64_t step = number / 128 / launch.strips;
  const auto strip = static_cast<int>(number / 128 % launch.strips);
  const QuadRegister at =
      quad_register(static_cast<int>(number % 128) / 4, static_cast<int>(number % 4));
  const std::int64_t window =
      cuda::lower_bound(launch.step_offsets, 0, launch.num_windows + 1, step + 1) - 1;
  const std::int64_t in_window = step - launch.step_offsets[window];
  const std::int64_t tile = launch.tile_offsets[window] + in_window / 2;
  const int quad = static_cast<int>(in_window % 2) * quads_per_step + at.quad;
  const QuadColumns columns = quad_columns_of(
      launch.words + (tile * launch.strips + strip) * quad_strip_words, at.row, quad);
  const std::int64_t row = (window * launch.strips + strip) * 16 + at.row;
  const VertexId* const ids = launch.columns + step * quad_step_columns + at.quad * quad_columns;
  const auto position_of = [&](int column) {
    if (column < 0) return -1;
    const EdgeOffset edge = launch.rows.first_edge_from(row, ids[column]);
    return static_cast<int>(launch.positions != nullptr ? launch.positions[edge] : edge);
  };
  launch.edges[number] = make_int2(position_of(columns.first), position_of(columns.second));
}

DeviceQuadValues place_on_device(const DeviceQuads& quads, const cuda::DeviceRows& rows,
                                 const Place& place) {
  constexpr unsigned threads = 256;
  const cuda_backend::CurrentDevice current(place.device.index);
  const auto step_offsets = cuda::to_device(quads.host.step_offsets.span(), place);
  const auto tile_offsets = cuda::to_device(quads.host.tile_offsets.span(), place);
  QuadValuesLaunch launch;
  launch.strips = quads.host.height / 16;
  launch.num_registers = quads.host.num_steps() * launch.strips * 32 * 4;
  launch.num_windows = quads.host.num_windows();
  launch.step_offsets = step_offsets.data();
  launch.tile_offsets = tile_offsets.data();
  launch.columns = quads.columns.data();
  launch.words = quads.words.data();
  launch.rows = view_of(rows);
  launch.positions = rows.positions.data();
  DeviceQuadValues values{Buffer<std::int32_t>(2 * launch.num_registers, place)};
  launch.edges = reinterpret_cast<int2*>(values.edges.data());
  cuda::launch(place_registers, dim3(cuda::num_blocks(launch.num_registers, threads)), threads,
               place.stream, launch);
  return values;
}

}  // namespace

std::shared_ptr<const DeviceQuadValues> device_quad_values(const Graph& graph, int height,
                                                           Side side, const Place& place) {
  const std::string what = std::string("places of values beside ") + to_string(side) +
                           " 2:4 tiles of " + std::to_string(height) + " rows";
  return cuda::kept_with<DeviceQuadValues>(graph, what, place, [&] {
    const auto rows = side_rows(graph, side, place);
    return place_on_device(*device_quads(graph, {height, side}, place), *rows, place);
  });
}

}  // namespace tessera::tiles
