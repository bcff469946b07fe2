// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_windows.cuh"

namespace tessera::ops {

const TallFunctions tall_fp16_aligned_pattern = {
    make_tall_function<CopyLoader<__half, 32, false>>(),
    make_tall_function<CopyLoader<__half, 64, false>>(),
    make_tall_function<CopyLoader<__half, 128, false>>()};
const TallFunctions tall_fp16_aligned_scaled = {
    make_tall_function<CopyLoader<__half, 32, true>>(),
    make_tall_function<CopyLoader<__half, 64, true>>(),
    make_tall_function<CopyLoader<__half, 128, true>>()};

}  // namespace tessera::ops
