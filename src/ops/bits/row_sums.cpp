// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/bits.hpp"

#include "core/on_device.hpp"
#include "ops/bits/check_run.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/plan_only.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/bits/cuda/row_terms.hpp"
#endif

namespace tessera::ops {
namespace {

using Codes = quant::BitTensorView<const std::uint32_t>;

std::int64_t row_sum(const Codes& tensor, std::int64_t row) {
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

}  // namespace

void bit_row_sums(Codes tensor, MatrixView<std::int64_t> sums) {
  const Checker check("bit_row_sums", {});
  check_tensor(check, tensor, "tensor", {}, tensor.bits, tensor.rows, tensor.depth);
  check.that(sums.rows == tensor.rows && sums.cols == 1, "sums are not one column of its rows");
  parallel_for(tensor.rows, 256, [&](std::int64_t row) { sums(row, 0) = row_sum(tensor, row); });
}

void bit_row_terms(Codes tensor, MatrixView<const float> row_scale, MatrixView<float> terms,
                   Stream stream) {
  const Device device = tensor.device;
  const Checker check("bit_row_terms", device);
  check_tensor(check, tensor, "tensor", device, tensor.bits, tensor.rows, tensor.depth);
  if (row_scale.data != nullptr) {
    check.matrix(row_scale, "row_scale", {ElementType::fp32, tensor.rows, 1});
  }
  check.that(terms.cols > 0, "terms have no column");
  check.matrix(terms, "terms", {ElementType::fp32, tensor.rows, terms.cols});
  if (plans_only()) return;
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    const OnDevice current(device);
    return cuda_row_terms(
        {tensor.words, tensor.plane_words(), tensor.words_per_row, tensor.rows, tensor.bits},
        {row_scale.data, row_scale.stride}, {terms.data, terms.stride, terms.cols > 1}, stream);
  }
#endif
  static_cast<void>(stream);
  parallel_for(tensor.rows, 256, [&](std::int64_t row) {
    const auto sum = static_cast<float>(row_sum(tensor, row));
    const float scale = row_scale.data == nullptr ? 1.0f : row_scale(row, 0);
    terms(row, 0) = scale * sum;
    if (terms.cols > 1) terms(row, 1) = scale;
  });
}

}  // namespace tessera::ops
