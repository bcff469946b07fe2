// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/kernel.cuh"

namespace tessera::ops {

template <int width>
constexpr TallAttentionFunction packed_dot_function =
    make_tall_function<AttentionForm::dot, __nv_bfloat16, width, RoundedWeights<__nv_bfloat16>>();

const PackedDotFunctions packed_dot_bf16 = {packed_dot_function<64>, packed_dot_function<128>};

}  // namespace tessera::ops
