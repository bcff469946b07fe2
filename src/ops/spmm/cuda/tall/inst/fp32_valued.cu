// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <int width>
constexpr TallFunction aligned =
    make_tall_function<ConvertLoader<float, width, 2, false, true, 1, true>>();

template <int width>
constexpr TallFunction scalar =
    make_tall_function<ConvertLoader<float, width, 2, false, false, 1, true>>();

}  // namespace

const TallValuedFunctions tall_fp32_valued = {{aligned<32>, aligned<64>, aligned<128>},
                                              {scalar<32>, scalar<64>, scalar<128>}};

}  // namespace tessera::ops
