// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/quant/bit_tensor.hpp"

namespace tessera::ops {

/// The sum of the codes of a row, in memory of this process.
std::int64_t code_sum(const quant::BitTensorView<const std::uint32_t>& tensor, std::int64_t row);

}  // namespace tessera::ops
