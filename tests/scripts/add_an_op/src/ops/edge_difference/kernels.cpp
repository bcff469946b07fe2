// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_difference/kernel.hpp"

namespace tessera::ops {

std::span<const EdgeDifferenceKernel> edge_difference_kernels() {
  return cpu_edge_difference_kernels();
}

}  // namespace tessera::ops
