// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <bool scaled, int groups>
constexpr TallFunctions functions = {make_tall_function<CopyLoader<__half, 32, scaled, groups>>(),
                                     make_tall_function<CopyLoader<__half, 64, scaled, groups>>(),
                                     make_tall_function<CopyLoader<__half, 128, scaled, groups>>()};

}  // namespace

const TallHalfFunctions tall_fp16_aligned = {functions<false, 1>, functions<false, 2>,
                                             functions<true, 1>, functions<true, 2>};

}  // namespace tessera::ops
