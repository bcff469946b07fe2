// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp16_aligned = {
    make_rows_functions<rows_policies, __half, true, PatternSum<__half>>(),
    make_rows_functions<rows_policies, __half, true, WeightedSum<__half>>(),
    make_rows_functions<rows_policies, __half, true, WithEpilogue<PatternSum<__half>>>(),
    make_rows_functions<rows_policies, __half, true, WithEpilogue<WeightedSum<__half>>>(),
};

}  // namespace tessera::ops
