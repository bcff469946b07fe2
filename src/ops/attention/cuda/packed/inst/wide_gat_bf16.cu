// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/gat_factors.cuh"

namespace tessera::ops {

const WidePackedFunctions packed_wide_gat_bf16 = {
    make_factored_gat<__nv_bfloat16, 32, RoundedColumns<__nv_bfloat16>>(),
    make_factored_gat<__nv_bfloat16, 64, RoundedColumns<__nv_bfloat16>>(),
    make_factored_gat<__nv_bfloat16, 128, RoundedColumns<__nv_bfloat16>>(),
};

}  // namespace tessera::ops
