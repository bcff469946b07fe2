// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp32_scalar = {
    make_rows_functions<rows_policies, float, false, PatternSum<float>>(),
    make_rows_functions<rows_policies, float, false, WeightedSum<float>>(),
    make_rows_functions<rows_policies, float, false, WithEpilogue<WeightedSum<float>>>(),
    make_rows_functions<rows_policies, float, false, WithEpilogue<WeightedSum<float>>>(),
};

}  // namespace tessera::ops
