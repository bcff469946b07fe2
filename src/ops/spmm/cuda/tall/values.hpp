// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"

/// Values of edges as tall windows take them (tiles/tile_values.hpp).
namespace tessera::ops {

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
