// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/row_sums.hpp"

#include <bit>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/bits.hpp"

#include "ops/bits/check_run.hpp"

namespace tessera::ops {

using Codes = quant::BitTensorView<const std::uint32_t>;

std::int64_t code_sum(const Codes& tensor, std::int64_t row) {
  std::int64_t total = 0;
  for (int p = 0; p < tensor.bits; ++p) {
    std::int64_t count = 0;
    for (std::int64_t w = 0; w < tensor.words_per_row; ++w) {
      count += std::popcount(tensor.row(p, row)[w]);
    }
    total += count << p;
  }
  return total;
}

void bit_row_sums(Codes tensor, MatrixView<std::int64_t> sums) {
  const Checker check("bit_row_sums", {});
  check_tensor(check, tensor, "tensor", {}, tensor.bits, tensor.rows, tensor.depth);
  check.that(sums.rows == tensor.rows && sums.cols == 1, "sums are not one column of its rows");
  parallel_for(tensor.rows, 256, [&](std::int64_t row) { sums(row, 0) = code_sum(tensor, row); });
}

}  // namespace tessera::ops
