// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <int width, bool scaled, int groups>
constexpr TallFunction function =
    make_tall_function<WithEpilogue<CopyLoader<__half, width, scaled, groups>>>();

template <bool scaled, int groups>
constexpr TallFunctions functions = {function<32, scaled, groups>, function<64, scaled, groups>,
                                     function<128, scaled, groups>};

}  // namespace

const TallHalfFunctions tall_fp16_epilogue = {functions<false, 1>, functions<false, 2>,
                                              functions<true, 1>, functions<true, 2>};

}  // namespace tessera::ops
