// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_values.hpp"

#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"

namespace tessera::ops {
namespace {

constexpr int height = 64;
constexpr int block_warps = 8;

struct PackLaunch {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  const EdgeOffset* positions = nullptr;
  const float* values = nullptr;
  const float* column_scales = nullptr;
  const EdgeOffset* step_offsets = nullptr;
  const VertexId* columns = nullptr;
  std::uint16_t* packed = nullptr;
};

/// Where the high part of a row and a column of a step stands: 128 threads with four registers of
/// two columns each (tiles/fragment.hpp), then the low parts.
__device__ std::int64_t place_of(std::int64_t step, int row, int column) {
  const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const int half = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  return step * (2 * 128 * 8) + thread * 8 + half;
}

__device__ std::uint16_t bits_of(__nv_bfloat16 value) { return __bfloat16_as_ushort(value); }

/// A warp a row.
__global__ void pack(const PackLaunch launch) {
  const std::int64_t row = std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
  if (row >= launch.num_rows) return;
  const auto offset = [&](std::int64_t of) -> EdgeOffset {
    return launch.offsets.narrow != nullptr ? launch.offsets.narrow[of] : launch.offsets.wide[of];
  };
  const std::int64_t window = row / height;
  const std::int64_t first = launch.step_offsets[window] * 16;
  const std::int64_t end = launch.step_offsets[window + 1] * 16;
  for (EdgeOffset edge = offset(row) + threadIdx.x % 32; edge < offset(row + 1); edge += 32) {
    const VertexId column = launch.indices[edge];
    float value = launch.values[launch.positions != nullptr ? launch.positions[edge] : edge];
    if (launch.column_scales != nullptr) value *= launch.column_scales[column];
    const std::int64_t at = cuda::lower_bound(launch.columns, first, end, column);
    const std::int64_t place =
        place_of(at / 16, static_cast<int>(row % height), static_cast<int>(at % 16));
    const __nv_bfloat16 high = __float2bfloat16_rn(value);
    launch.packed[place] = bits_of(high);
    launch.packed[place + 128 * 8] = bits_of(__float2bfloat16_rn(value - __bfloat162float(high)));
  }
}

bool all_fit(std::span<const float> values) {
  // So that a value times a scale is below what bf16 rounds to infinity.
  constexpr float largest = 1e19f;
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::abs(value) <= largest; });
}

}  // namespace

std::string why_not_values(const Graph& graph, std::span<const float> column_scales) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<bool>(all_fit(graph.values().span()));
  };
  const auto fit = std::static_pointer_cast<const bool>(graph.derived("values fit bf16", make));
  return *fit && all_fit(column_scales) ? "" : "values that bf16 does not hold";
}

Buffer<std::uint16_t> pack_values(const tiles::DeviceTiles& tiled, const cuda::DeviceRows& rows,
                                  std::span<const float> values,
                                  std::span<const float> column_scales, Device device) {
  const std::int64_t bytes = tiled.host.num_steps() * value_bytes_per_step;
  Buffer<std::uint16_t> packed(bytes / 2, default_memory(device));
  fill_zero(packed.data(), static_cast<std::size_t>(bytes), device);
  const Buffer<float> device_values = cuda::to_device(values, device);
  const Buffer<float> device_scales = cuda::to_device(column_scales, device);
  const Buffer<EdgeOffset> step_offsets = cuda::to_device(tiled.host.step_offsets.span(), device);
  PackLaunch launch;
  launch.num_rows = rows.num_rows;
  launch.offsets = rows.offsets();
  launch.indices = rows.indices.data();
  launch.positions = rows.positions.data();
  launch.values = device_values.data();
  launch.column_scales = device_scales.data();
  launch.step_offsets = step_offsets.data();
  launch.columns = tiled.columns.data();
  launch.packed = packed.data();
  cuda::launch(pack, dim3(cuda::num_blocks(rows.num_rows, block_warps)), block_warps * 32, Stream{},
               launch);
  synchronise(device);
  return packed;
}

}  // namespace tessera::ops
