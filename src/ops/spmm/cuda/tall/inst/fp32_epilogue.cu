// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <int width, int groups>
constexpr TallFunction function =
    make_tall_function<WithEpilogue<ConvertLoader<float, width, 2, false, true, groups>>>();

template <int groups>
constexpr TallFunctions functions = {function<32, groups>, function<64, groups>,
                                     function<128, groups>};

}  // namespace

const TallHalfFunctions tall_fp32_epilogue = {functions<1>, functions<2>, functions<1>,
                                              functions<2>};

}  // namespace tessera::ops
