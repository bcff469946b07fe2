// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cuts.hpp"

namespace tessera::cuda {

__device__ inline EdgeOffset row_offset(const CutRows& rows, std::int64_t row) {
  return rows.offsets.narrow != nullptr ? __ldg(rows.offsets.narrow + row)
                                        : __ldg(rows.offsets.wide + row);
}

}  // namespace tessera::cuda
