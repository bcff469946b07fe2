// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.cuh"

namespace tessera::ops {

template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::boundaries,
                                    RowsReduction::pattern_best}>;
template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::boundaries,
                                    RowsReduction::pattern_winner_sum}>;
template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::boundaries, RowsReduction::best}>;
template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::boundaries,
                                    RowsReduction::winner_sum}>;
template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::boundaries, RowsReduction::best,
                                    true}>;

}  // namespace tessera::ops
