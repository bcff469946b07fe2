// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gat_by_columns.cuh"
#include "ops/attention/cuda/short/gat_by_rows.cuh"

namespace tessera::ops {

const SweepsOf<short_head_widths> short_gat_gradient_bf16 = windows_functions<short_head_widths>(
    [](auto width) { return windows_sweeps<ShortGatByRows<width>, ShortGatByColumns<width>>; });

}  // namespace tessera::ops
