// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/rounder.hpp"

namespace tessera::nn {

MatrixView<float> Rounder::ranges(const Tensor& x, ops::RoundingRange range) {
  const std::int64_t count = range == ops::RoundingRange::matrix ? 1
                             : range == ops::RoundingRange::rows ? x.rows()
                                                                 : x.cols();
  if (ranges_.size() < count * 2) ranges_ = Buffer<float>(count * 2, x.placement().place());
  return matrix_in(ranges_, count, 2);
}

const Tensor& Rounder::operator()(const Tensor& x, const Context& context,
                                  ops::RoundingRange range) {
  if (!rounds()) return x;
  rounded_.resize(x.rows(), x.cols());
  ops::round_to_codes(x, bits_, range, ranges(x, range), rounded_, x.device(), context.stream);
  return rounded_;
}

void Rounder::in_place(Tensor& x, const Context& context, ops::RoundingRange range) {
  if (!rounds()) return;
  ops::round_to_codes(x, bits_, range, ranges(x, range), x, x.device(), context.stream);
}

}  // namespace tessera::nn
