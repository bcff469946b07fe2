// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/backward.cuh"

namespace tessera::ops {

const HeadGradientPasses heads_gradient_fp32 = {make_head_gradient<float, true>(),
                                                make_head_gradient<float, false>()};

}  // namespace tessera::ops
