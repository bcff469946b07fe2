// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp16_scalar = {
    make_rows_functions<rows_policies, __half, false, PatternSum<__half>>(),
    make_rows_functions<rows_policies, __half, false, WeightedSum<__half>>(),
    make_rows_functions<rows_policies, __half, false, WithEpilogue<WeightedSum<__half>>>(),
    make_rows_functions<rows_policies, __half, false, WithEpilogue<WeightedSum<__half>>>(),
};

}  // namespace tessera::ops
