// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gatv2_gradient.cuh"

namespace tessera::ops {

const ShortGatV2Gradients short_gatv2_by_columns_bf16 =
    make_short_gatv2_gradients<__nv_bfloat16, false>();

}  // namespace tessera::ops
