// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include "ops/bits/cuda/launch.hpp"

namespace tessera::ops {

/// Describes stacked planes to the copy engine: boxes of 32 words of `rows` rows of one plane, laid
/// in shared memory as `cuda::RowLayout<128>` says. What is behind the last word or row comes as 0.
CUtensorMap plane_map(const BitRows& planes, int rows);

}  // namespace tessera::ops
