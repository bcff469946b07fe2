// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rectified/gradient.cuh"

namespace tessera::ops {

const RectifiedGradientFunctions rectified_by_rows_bf16 =
    make_rectified_gradients<__nv_bfloat16, true>();

}  // namespace tessera::ops
