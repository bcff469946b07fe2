// SPDX-License-Identifier: Apache-2.0
#include "bench/wide_check.hpp"

#include <algorithm>
#include <cmath>

#include "train/host.hpp"

namespace tessera::bench {
namespace {

/// Several sums one after the other, each with its own rounding.
double bound_of(Precision precision) {
  switch (precision) {
    case Precision::bf16: return 0x1p-5;
    case Precision::tf32:
    case Precision::fp16: return 0x1p-8;
    default: return 1e-4;
  }
}

}  // namespace

void copy_state(nn::Layer& narrow, nn::Layer& wide) {
  const auto from = narrow.state();
  const auto to = wide.state();
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i].tensor->copy_from(train::to_host(*from[i].tensor));
  }
}

Gate wide_gate(const step::Tensor& computed, const step::Tensor& expected) {
  const Matrix<float> narrow = train::to_host(computed);
  const auto wide = expected.as<double>();
  const ErrorMeasure measure(MeasureOf{});
  double largest = 0, error = 0;
  for (std::int64_t i = 0; i < wide.rows; ++i) {
    for (std::int64_t j = 0; j < wide.cols; ++j) {
      largest = std::max(largest, std::abs(wide(i, j)));
      error = std::max(error, measure.error_of(static_cast<double>(narrow(i, j)), wide(i, j), 1));
    }
  }
  return {error / (largest > 0 ? largest : 1), bound_of(computed.precision()), wide.rows,
          wide.rows};
}

}  // namespace tessera::bench
