// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cuda/rows.hpp"
#include "tessera/core/memory.hpp"
#include "tiles/cuda/device_tiles.hpp"

/// Values of edges as tall windows take them (TallLaunch::values).
namespace tessera::ops {

/// Bytes of a step of 16 columns and 64 rows: a high and a low bf16 part for every place, used or
/// not.
inline constexpr std::int64_t value_bytes_per_step = 16 * 64 * 2 * 2;

/// Why values, times the scales of columns, cannot be high and low parts, in words; empty if they
/// can.
std::string why_not_values(const Graph& graph, std::span<const float> column_scales);

/// The value of each edge times its column's scale (empty: 1) as two bf16 numbers that add up to
/// it, on the GPU; 0 where there is no edge. `rows` are those that were translated, in windows of
/// 64.
Buffer<std::uint16_t> pack_values(const tiles::DeviceTiles& tiled, const cuda::DeviceRows& rows,
                                  std::span<const float> values,
                                  std::span<const float> column_scales, Device device);

}  // namespace tessera::ops
