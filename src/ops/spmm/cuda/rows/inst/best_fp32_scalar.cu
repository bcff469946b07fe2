// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/instances.cuh"

namespace tessera::ops {

template struct RowsKernels<RowsKey{Precision::fp32, RowStarts::anywhere, RowsReduction::best}>;
template struct RowsKernels<RowsKey{Precision::fp32, RowStarts::anywhere,
                                    RowsReduction::winner_sum}>;
template struct RowsKernels<RowsKey{Precision::fp32, RowStarts::anywhere, RowsReduction::best,
                                    true}>;

}  // namespace tessera::ops
