// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall_windows.cuh"

namespace tessera::ops {

const TallFunctions tall_fp32_two_64 = {
    make_tall_function<ConvertLoader<float, 32, 2, false, true, 1>>(),
    make_tall_function<ConvertLoader<float, 64, 2, false, true, 1>>(),
    make_tall_function<ConvertLoader<float, 128, 2, false, true, 1>>()};
const TallFunctions tall_fp32_two_128 = {
    make_tall_function<ConvertLoader<float, 32, 2, false, true, 2>>(),
    make_tall_function<ConvertLoader<float, 64, 2, false, true, 2>>(),
    make_tall_function<ConvertLoader<float, 128, 2, false, true, 2>>()};
const TallFunctions tall_fp32_two_scalar = {
    make_tall_function<ConvertLoader<float, 32, 2, false, false, 1>>(),
    make_tall_function<ConvertLoader<float, 64, 2, false, false, 1>>(),
    make_tall_function<ConvertLoader<float, 128, 2, false, false, 1>>()};

}  // namespace tessera::ops
