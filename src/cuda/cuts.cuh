// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cuts.hpp"

namespace tessera::cuda {

__device__ inline EdgeOffset line_offset(const Lines& lines, std::int64_t line) {
  return lines.offsets.narrow != nullptr ? __ldg(lines.offsets.narrow + line)
                                         : __ldg(lines.offsets.wide + line);
}

}  // namespace tessera::cuda
