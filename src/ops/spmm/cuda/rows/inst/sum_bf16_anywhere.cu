// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.cuh"

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
