// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const BestFunctions best_fp16_scalar = {
    make_rows_functions<best_policies, __half, false, Best<__half>>(),
    make_rows_functions<best_policies, __half, false, WonSum<__half>>(),
    make_rows_functions<best_policies, __half, false, WithEpilogue<Best<__half>>>(),
};

}  // namespace tessera::ops
