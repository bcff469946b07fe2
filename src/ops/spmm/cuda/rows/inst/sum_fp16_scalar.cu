// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.cuh"

namespace tessera::ops {

template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::elements,
                                    RowsReduction::pattern_sum}>;
template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::elements,
                                    RowsReduction::weighted_sum}>;
template struct RowsKernels<RowsKey{Precision::fp16, RowStarts::elements,
                                    RowsReduction::weighted_sum, true}>;

}  // namespace tessera::ops
