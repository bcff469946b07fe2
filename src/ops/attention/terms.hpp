// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// The kernels that take a term for each edge, and nothing else.
std::span<const AttentionKernel> attention_kernels_with_terms();

}  // namespace tessera::ops
