// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/kernel.cuh"

namespace tessera::ops {
namespace {

template <int width, bool aligned, int groups>
constexpr TallFunction function =
    make_tall_function<ConvertLoader<float, width, 3, false, aligned, groups>>();

/// Sums of a stage beside those of all stages: wide rows are taken in parts, which leaves registers
/// for both.
template <bool aligned, int groups>
constexpr TallFunctions functions = {function<32, aligned, groups>, function<64, aligned, groups>,
                                     function<64, aligned, groups>};

}  // namespace

const TallFullFunctions tall_fp32_three = {functions<true, 1>, functions<true, 2>,
                                           functions<false, 1>, functions<false, 2>};

}  // namespace tessera::ops
