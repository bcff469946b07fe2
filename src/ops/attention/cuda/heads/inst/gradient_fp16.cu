// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/backward.cuh"

namespace tessera::ops {

const HeadGradientPasses heads_gradient_fp16 = {make_head_gradient<__half, true>(),
                                                make_head_gradient<__half, false>()};

}  // namespace tessera::ops
