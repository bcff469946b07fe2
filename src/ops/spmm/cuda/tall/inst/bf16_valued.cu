// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <int width>
constexpr TallFunction aligned =
    make_tall_function<CopyLoader<__nv_bfloat16, width, false, 1, true>>();

template <int width>
constexpr TallFunction scalar =
    make_tall_function<ConvertLoader<__nv_bfloat16, width, 1, false, false, 1, true>>();

}  // namespace

const TallValuedFunctions tall_bf16_valued = {{aligned<32>, aligned<64>, aligned<128>},
                                              {scalar<32>, scalar<64>, scalar<128>}};

}  // namespace tessera::ops
