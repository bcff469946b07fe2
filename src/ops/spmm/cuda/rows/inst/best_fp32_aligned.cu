// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const BestFunctions best_fp32_aligned = {
    make_rows_functions<best_policies, float, true, Best<float>>(),
    make_rows_functions<best_policies, float, true, WonSum<float>>(),
    make_rows_functions<best_policies, float, true, WithEpilogue<Best<float>>>(),
};

}  // namespace tessera::ops
