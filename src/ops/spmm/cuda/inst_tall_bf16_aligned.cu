// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_windows.cuh"

namespace tessera::ops {

const TallFunctions tall_bf16_aligned_pattern = {
    make_tall_function<CopyLoader<__nv_bfloat16, 32, false>>(),
    make_tall_function<CopyLoader<__nv_bfloat16, 64, false>>(),
    make_tall_function<CopyLoader<__nv_bfloat16, 128, false>>()};
const TallFunctions tall_bf16_aligned_scaled = {
    make_tall_function<CopyLoader<__nv_bfloat16, 32, true>>(),
    make_tall_function<CopyLoader<__nv_bfloat16, 64, true>>(),
    make_tall_function<CopyLoader<__nv_bfloat16, 128, true>>()};

}  // namespace tessera::ops
