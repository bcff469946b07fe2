// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/rounder.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::nn {

Rounder::Rounder(int bits, Placement placement) : bits_(bits), rounded_(placement) {
  if (bits == 0 || bytes_per_element(placement.precision) >= sizeof(float)) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} bits of numbers that are stored as {}", bits, to_string(placement.precision)),
      "model", "use fp32, or all bits");
}

void Rounder::round(const Tensor& x, ops::RoundingRange range, const Tensor* row_scale, Tensor& y,
                    const Context& context) {
  num_ranges_ = range == ops::RoundingRange::matrix ? 1
                : range == ops::RoundingRange::rows ? x.rows()
                                                    : x.cols();
  if (ranges_.size() < num_ranges_ * 2) {
    ranges_ = Buffer<float>(num_ranges_ * 2, x.placement().place());
  }
  ops::round_to_codes(x, bits_, range, matrix_in(ranges_, num_ranges_, 2), y, x.device(),
                      context.stream,
                      row_scale == nullptr ? ops::ConstOperand() : ops::ConstOperand(*row_scale));
}

const Tensor& Rounder::operator()(const Tensor& x, const Context& context, ops::RoundingRange range,
                                  const Tensor* row_scale) {
  if (!rounds()) return x;
  rounded_.resize(x.rows(), x.cols());
  round(x, range, row_scale, rounded_, context);
  return rounded_;
}

void Rounder::in_place(Tensor& x, const Context& context, ops::RoundingRange range,
                       const Tensor* row_scale) {
  if (rounds()) round(x, range, row_scale, x, context);
}

std::vector<float> Rounder::last_ranges() const {
  std::vector<float> ranges(static_cast<std::size_t>(num_ranges_ * 2));
  const Device device = ranges_.device();
  copy_bytes(ranges.data(), ranges_.data(), ranges.size() * sizeof(float), device);
  synchronise(device);
  return ranges;
}

}  // namespace tessera::nn
