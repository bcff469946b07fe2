// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gatv2.cuh"

namespace tessera::ops {

const ShortGatV2Functions short_gatv2_fp16 = make_short_gatv2<__half>();

}  // namespace tessera::ops
