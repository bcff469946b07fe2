// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::nn {

/// How many numbers a matrix for each relation has. Widths below 1 and a negative number of
/// relations are `invalid_argument` errors of the layer.
std::int64_t checked_numbers(std::int64_t in, std::int64_t out, std::int64_t relations,
                             const char* layer);

}  // namespace tessera::nn
