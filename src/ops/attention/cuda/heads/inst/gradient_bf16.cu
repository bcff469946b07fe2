// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/backward.cuh"

namespace tessera::ops {

const HeadGradientPasses heads_gradient_bf16 = {make_head_gradient<__nv_bfloat16, true>(),
                                                make_head_gradient<__nv_bfloat16, false>()};

}  // namespace tessera::ops
