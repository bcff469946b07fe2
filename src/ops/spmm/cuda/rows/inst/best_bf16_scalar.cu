// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::elements, RowsReduction::best}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::elements,
                                    RowsReduction::winner_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::elements, RowsReduction::best,
                                    true}>;

}  // namespace tessera::ops
