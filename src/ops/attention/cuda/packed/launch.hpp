// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"

/// The kernels of GAT by packed weights, which take the launch of tall windows.
namespace tessera::ops {

extern const TallAttentionFunctions packed_gat_bf16;

}  // namespace tessera::ops
