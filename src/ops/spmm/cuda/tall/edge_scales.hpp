// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::ops {

/// For each edge in CSR order the scale of the column that it has in the translated side: its own
/// column forward, its row backward. All arrays lie on the GPU. Empty where columns have no scales.
Buffer<float> edge_scales(const cuda::DeviceRows& rows, const SharedArray<float>& column_scales,
                          bool forward, const Place& place);

}  // namespace tessera::ops
