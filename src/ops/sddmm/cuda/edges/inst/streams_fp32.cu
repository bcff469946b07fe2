// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/stream.cuh"

namespace tessera::ops {

template struct EdgeStreams<Precision::fp32>;

}  // namespace tessera::ops
