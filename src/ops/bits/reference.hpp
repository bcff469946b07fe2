// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/quant/bit_tensor.hpp"

/// What bit products mean: sequential, on codes, in 64 bits.
namespace tessera::ops::reference {

using BitOperand = quant::BitTensorView<const std::uint32_t>;

/// sums[i][j] = sum over k of a[i][k] b[j][k].
void bit_gemm(BitOperand a, BitOperand b, MatrixView<std::int64_t> sums);

/// sums[i][j] = sum over the sources k of i of b[k][j].
void bit_aggregate(const Graph& graph, BitOperand b, MatrixView<std::int64_t> sums);

}  // namespace tessera::ops::reference
