// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

/// a . b in double, so that squares neither overflow nor vanish. Eight sums side by side, because
/// the compiler may not reorder one.
template <class T>
double row_dot(const T* a, const T* b, std::int64_t count) {
  constexpr int lanes = 8;
  double sums[lanes] = {};
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      sums[lane] += static_cast<double>(a[j + lane]) * static_cast<double>(b[j + lane]);
    }
  }
  double sum = 0;
  for (; j < count; ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace

void CpuDenseOps::row_normalise(ConstOperand x, Operand y, double epsilon, Stream) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const from = x.as<T>().row(i);
        T* const to = y.as<T>().row(i);
        const double length = std::sqrt(row_dot(from, from, x.cols));
        const double factor = 1 / (length < epsilon ? epsilon : length);
        for (std::int64_t j = 0; j < x.cols; ++j) {
          to[j] = static_cast<T>(static_cast<double>(from[j]) * factor);
        }
      }
    });
  });
}

void CpuDenseOps::row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x,
                                         double epsilon, Stream) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const value = x.as<T>().row(i);
        const T* const gradient = grad_y.as<T>().row(i);
        T* const to = grad_x.as<T>().row(i);
        const double length = std::sqrt(row_dot(value, value, x.cols));
        const bool is_short = length < epsilon;
        const double factor = 1 / (is_short ? epsilon : length);
        // Part of the gradient along the row; it cannot change a row of fixed length.
        const double along = is_short ? 0 : row_dot(gradient, value, x.cols) * factor * factor;
        for (std::int64_t j = 0; j < x.cols; ++j) {
          const double across =
              static_cast<double>(gradient[j]) - along * static_cast<double>(value[j]);
          to[j] = static_cast<T>(across * factor);
        }
      }
    });
  });
}

}  // namespace tessera::ops
