// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <int width, bool aligned, int groups>
constexpr TallFunction function =
    make_tall_function<ConvertLoader<float, width, 2, false, aligned, groups>>();

template <bool aligned, int groups>
constexpr TallFunctions functions = {function<32, aligned, groups>, function<64, aligned, groups>,
                                     function<128, aligned, groups>};

}  // namespace

const TallFullFunctions tall_fp32_two = {functions<true, 1>, functions<true, 2>,
                                         functions<false, 1>, functions<false, 2>};

}  // namespace tessera::ops
