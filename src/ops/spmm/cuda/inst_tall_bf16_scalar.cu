// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_windows.cuh"

namespace tessera::ops {

const TallFunctions tall_bf16_scalar_pattern = {
    make_tall_function<ConvertLoader<__nv_bfloat16, 32, 1, false, false, 1>>(),
    make_tall_function<ConvertLoader<__nv_bfloat16, 64, 1, false, false, 1>>(),
    make_tall_function<ConvertLoader<__nv_bfloat16, 128, 1, false, false, 1>>()};
const TallFunctions tall_bf16_scalar_scaled = {
    make_tall_function<ConvertLoader<__nv_bfloat16, 32, 1, true, false, 1>>(),
    make_tall_function<ConvertLoader<__nv_bfloat16, 64, 1, true, false, 1>>(),
    make_tall_function<ConvertLoader<__nv_bfloat16, 128, 1, true, false, 1>>()};

}  // namespace tessera::ops
