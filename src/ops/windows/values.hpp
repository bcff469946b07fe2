// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/size_range.hpp"
#include "cuda/rows.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/shared_array.hpp"

/// Column scales and values of edges as windows take them (TallLaunch::Matrix,
/// tiles/tile_values.hpp).
namespace tessera::ops {

/// A power of two that brings scales into the range of fp16; 1 for other precisions.
float scale_factor(const SizeRange& scales, Precision precision);

/// Why a precision cannot hold these scales as a high and a low part, in words; empty if it can.
std::string why_not_scales(const SizeRange& scales, Precision precision);

/// One word for each of `columns`. All arrays lie on the GPU.
Buffer<std::uint32_t> pack_scales(std::span<const VertexId> columns,
                                  const SharedArray<float>& scales, float factor,
                                  Precision precision, const Place& place);

/// For each edge in CSR order the scale of the column that it has in the translated side: its own
/// column forward, its row backward. All arrays lie on the GPU. Empty where columns have no scales.
Buffer<float> edge_scales(const cuda::DeviceRows& rows, const SharedArray<float>& column_scales,
                          bool forward, const Place& place);

/// What entries are made of: values in CSR order, each times its edge's scale and a factor.
struct ValueSource {
  const void* values = nullptr;  ///< null: 1
  Precision stored = Precision::fp32;
  std::int64_t stride = 1;             ///< between two values, in elements
  const float* edge_scales = nullptr;  ///< null: 1
  float factor = 1;
};

/// Writes an entry for each of `edges` (tiles::ValueLayout) in the form of a precision.
void pack_values(std::span<const std::int32_t> edges, const ValueSource& source,
                 Precision precision, std::uint32_t* entries, Stream stream);

}  // namespace tessera::ops
