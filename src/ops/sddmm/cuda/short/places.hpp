// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "ops/sddmm/cuda/short/launch.hpp"
#include "tiles/cuda/device_tiles.hpp"

/// What dot products in short windows know of their edges, made on the GPU.
namespace tessera::ops {

/// The bits of tiles of 16 rows, row by row: see ShortDotsLaunch.
Buffer<std::uint32_t> step_masks(const tiles::DeviceTiles& tiles, const Place& place);

/// The places of all runs; the last run has no steps and no places.
Buffer<DotPlaces> run_places(const cuda::DeviceRows& rows, const Buffer<VertexId>& columns,
                             const Buffer<DotRun>& runs, const Place& place);

}  // namespace tessera::ops
