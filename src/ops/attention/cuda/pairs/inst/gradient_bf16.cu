// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/attention/cuda/pairs/backward.cuh"

namespace tessera::ops {

const PairGradients pair_by_rows_bf16 = {pair_by_rows<__nv_bfloat16, 32>,
                                         pair_by_rows<__nv_bfloat16, 64>};
const PairGradients pair_by_columns_bf16 = {pair_by_columns<__nv_bfloat16, 32>,
                                            pair_by_columns<__nv_bfloat16, 64>};

}  // namespace tessera::ops
