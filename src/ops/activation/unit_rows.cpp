// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// a . b in double, so that squares neither overflow nor vanish. Eight sums side by side, because
/// the compiler may not reorder one.
template <class A, class B>
double row_dot(const A* a, const B* b, std::int64_t count) {
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

/// A row of x divided by its length, or by epsilon where it is shorter.
struct UnitRow {
  double factor = 1;
  bool is_short = false;

  template <class T>
  UnitRow(const T* x, std::int64_t count, double epsilon) {
    const double length = std::sqrt(row_dot(x, x, count));
    is_short = length < epsilon;
    factor = 1 / (is_short ? epsilon : length);
  }

  /// Calls `take(j, gradient of x[j])` for a gradient of the divided row.
  template <class T, class G, class Take>
  void backward(const T* x, const G* gradient, std::int64_t count, Take&& take) const {
    // Part of the gradient along the row; it cannot change a row of fixed length.
    const double along = is_short ? 0 : row_dot(gradient, x, count) * factor * factor;
    for (std::int64_t j = 0; j < count; ++j) {
      const double across = static_cast<double>(gradient[j]) - along * static_cast<double>(x[j]);
      take(j, across * factor);
    }
  }
};

/// The element of a 1 x 1 matrix that may be absent.
template <class T>
double only_element(const ConstOperand& matrix) {
  return matrix.absent() ? 0 : static_cast<double>(matrix.as<T>()(0, 0));
}

}  // namespace

void run_on_cpu(const UnitRowsCall& call) {
  const auto& [x, factor, unit, scaled, epsilon] = call;
  visit_stored(x.type, [&]<class T>() {
    const double scale = only_element<T>(factor);
    for_each_row(x.rows, x.cols, [&](std::int64_t i) {
      const T* const from = x.as<T>().row(i);
      T* const to = unit.as<T>().row(i);
      const UnitRow row(from, x.cols, epsilon);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        to[j] = rounded_to<T>(static_cast<double>(from[j]) * row.factor);
      }
      if (scaled.absent()) return;
      T* const times_factor = scaled.as<T>().row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        times_factor[j] = rounded_to<T>(scale * static_cast<double>(to[j]));
      }
    });
  });
}

void run_on_cpu(const UnitRowsGradCall& call) {
  const auto& [x, factor, grad_unit, grad_scaled, grad_x, epsilon] = call;
  visit_stored(x.type, [&]<class T>() {
    const double scale = only_element<T>(factor);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      Buffer<double> gradient(factor.absent() ? 0 : x.cols);
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const value = x.as<T>().row(i);
        const T* const of_unit = grad_unit.as<T>().row(i);
        T* const to = grad_x.as<T>().row(i);
        const UnitRow row(value, x.cols, epsilon);
        if (factor.absent()) {
          row.backward(value, of_unit, x.cols,
                       [&](std::int64_t j, double through) { to[j] = rounded_to<T>(through); });
          continue;
        }
        const T* const of_scaled = grad_scaled.as<T>().row(i);
        for (std::int64_t j = 0; j < x.cols; ++j) {
          gradient[j] = static_cast<double>(of_unit[j]) + scale * static_cast<double>(of_scaled[j]);
        }
        row.backward(value, gradient.data(), x.cols, [&](std::int64_t j, double through) {
          to[j] = rounded_to<T>(static_cast<double>(to[j]) + through);
        });
      }
    });
  });
}

}  // namespace tessera::ops
