// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/ops/attention.hpp"

namespace tessera::ops {

/// How far the weights that a kernel of attention computes may be off, beside the rounding of sums.
double attention_weight_error(const std::string& kernel, const AttentionOptions& options);

}  // namespace tessera::ops
