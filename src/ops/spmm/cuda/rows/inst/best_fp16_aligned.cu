// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

const BestFunctions best_fp16_aligned = {
    make_rows_functions<best_policies, __half, true, Best<__half>>(),
    make_rows_functions<best_policies, __half, true, WonSum<__half>>(),
    make_rows_functions<best_policies, __half, true, WithEpilogue<Best<__half>>>(),
};

}  // namespace tessera::ops
