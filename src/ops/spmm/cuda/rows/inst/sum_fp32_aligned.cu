// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const RowsFunctions rows_fp32_aligned = {
    make_rows_functions<rows_policies, float, true, PatternSum<float>>(),
    make_rows_functions<rows_policies, float, true, WeightedSum<float>>(),
    make_rows_functions<rows_policies, float, true, WithEpilogue<PatternSum<float>>>(),
    make_rows_functions<rows_policies, float, true, WithEpilogue<WeightedSum<float>>>(),
};

}  // namespace tessera::ops
