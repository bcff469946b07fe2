// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_windows.cuh"

namespace tessera::ops {

const TallFunctions tall_fp32_three_64 = {
    make_tall_function<ConvertLoader<float, 32, 3, false, true, 1>>(),
    make_tall_function<ConvertLoader<float, 64, 3, false, true, 1>>(),
    make_tall_function<ConvertLoader<float, 128, 3, false, true, 1>>()};
const TallFunctions tall_fp32_three_128 = {
    make_tall_function<ConvertLoader<float, 32, 3, false, true, 2>>(),
    make_tall_function<ConvertLoader<float, 64, 3, false, true, 2>>(),
    make_tall_function<ConvertLoader<float, 128, 3, false, true, 2>>()};
const TallFunctions tall_fp32_three_scalar = {
    make_tall_function<ConvertLoader<float, 32, 3, false, false, 1>>(),
    make_tall_function<ConvertLoader<float, 64, 3, false, false, 1>>(),
    make_tall_function<ConvertLoader<float, 128, 3, false, false, 1>>()};

}  // namespace tessera::ops
