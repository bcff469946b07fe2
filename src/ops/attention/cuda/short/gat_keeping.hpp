// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/keeping.hpp"

namespace tessera::ops {

/// Over windows of 16 rows, of heads so wide.
inline constexpr int kept_head_width = 64;
extern const KeepingFunctions short_gat_keeping_bf16;

}  // namespace tessera::ops
