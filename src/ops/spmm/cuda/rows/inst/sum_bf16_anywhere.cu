// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::units, RowsReduction::pattern_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::units,
                                    RowsReduction::weighted_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::anywhere,
                                    RowsReduction::pattern_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::anywhere,
                                    RowsReduction::weighted_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::anywhere,
                                    RowsReduction::weighted_sum, true}>;

}  // namespace tessera::ops
