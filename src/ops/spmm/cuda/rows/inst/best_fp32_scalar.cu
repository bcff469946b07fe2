// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const BestFunctions best_fp32_scalar = {
    make_rows_functions<best_policies, float, false, Best<float>>(),
    make_rows_functions<best_policies, float, false, WonSum<float>>(),
    make_rows_functions<best_policies, float, false, WithEpilogue<Best<float>>>(),
};

}  // namespace tessera::ops
