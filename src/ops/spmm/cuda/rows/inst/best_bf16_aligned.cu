// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::boundaries,
                                    RowsReduction::pattern_best}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::boundaries,
                                    RowsReduction::pattern_winner_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::boundaries, RowsReduction::best}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::boundaries,
                                    RowsReduction::winner_sum}>;
template struct RowsKernels<RowsKey{Precision::bf16, RowStarts::boundaries, RowsReduction::best,
                                    true}>;

}  // namespace tessera::ops
