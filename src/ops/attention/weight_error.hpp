// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::ops {

/// How far the weights that a kernel of attention computes may be off, beside the rounding of sums.
double attention_weight_error(const std::string& kernel);

}  // namespace tessera::ops
