// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/keeping.hpp"

namespace tessera::ops {

/// Heads of 64 features over windows of 16 rows.
extern const KeepingFunctions short_gat_keeping_bf16;

}  // namespace tessera::ops
