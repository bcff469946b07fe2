// SPDX-License-Identifier: Apache-2.0
#include "ops/heads/kernels.hpp"
#include "ops/simd/lanes.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Lanes of the vectors that a head of known width is cut into without a rest; of any other head
/// (width 0), those of its whole vectors.
template <class T, int Width>
constexpr int head_lanes() {
  if (Width == 0) return lanes<T>;
  int n = lanes<T>;
  while (Width % n != 0) n /= 2;
  return n;
}

/// Calls `body.template operator()<N>(k)` for the vectors of a head, then for single elements.
template <class T, int Width, class Body>
TESSERA_INLINE void for_head_vectors(std::int64_t width, Body&& body) {
  constexpr int n = head_lanes<T, Width>();
  if constexpr (Width > 0) {
    unrolled<Width / n>([&](auto i)
                            __attribute__((always_inline)) { body.template operator()<n>(i * n); });
  } else {
    std::int64_t k = 0;
    for (; k + n <= width; k += n) body.template operator()<n>(k);
    for (; k < width; ++k) body.template operator()<1>(k);
  }
}

template <class T, int Width>
void dot(const HeadRows<T>& rows, T* y, std::int64_t y_stride) {
  constexpr int n = head_lanes<T, Width>();
  const std::int64_t width = Width > 0 ? Width : rows.width;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    for (std::int64_t h = 0; h < rows.heads; ++h) {
      const T* const x = rows.x + i * rows.x_stride + h * width;
      const T* const vector = rows.vector + h * width;
      Lanes<T, n> sums = {};
      T rest = 0;
      for_head_vectors<T, Width>(
          width, [&]<int N>(std::int64_t k) __attribute__((always_inline)) {
            if constexpr (N == n) {
              sums += load_lanes<N>(x + k) * load_lanes<N>(vector + k);
            } else {
              rest += x[k] * vector[k];
            }
          });
      y[i * y_stride + h] = horizontal_sum<T, n>(sums) + rest;
    }
  }
}

template <class T, int N>
TESSERA_INLINE Lanes<double, N> in_double(Lanes<T, N> values) {
  if constexpr (N == 1) {
    return static_cast<double>(values);
  } else {
    return __builtin_convertvector(values, Lanes<double, N>);
  }
}

/// Adds to the gradient of one row's head.
template <class T, int Width>
TESSERA_INLINE void add_scaled_vector(T factor, const T* vector, std::int64_t width, T* to) {
  for_head_vectors<T, Width>(
      width, [&]<int N>(std::int64_t k) __attribute__((always_inline)) {
        store_lanes<N>(to + k,
                       Lanes<T, N>(load_lanes<N>(to + k) + factor * load_lanes<N>(vector + k)));
      });
}

/// Adds the products of one head in some rows to `sums`, which a head of known width keeps in
/// registers.
template <class T, int Width>
TESSERA_INLINE void add_products(const T* x, std::int64_t x_stride, const T* factors,
                                 std::int64_t factor_stride, std::int64_t rows, std::int64_t width,
                                 double* sums) {
  constexpr int n = head_lanes<T, Width>();
  if constexpr (Width > 0) {
    Lanes<double, n> totals[Width / n];
    __builtin_memcpy(&totals, sums, sizeof totals);
    for (std::int64_t i = 0; i < rows; ++i) {
      unrolled<Width / n>([&](auto v) __attribute__((always_inline)) {
        const Lanes<T, n> values = load_lanes<n>(x + i * x_stride + v.value * n);
        totals[v.value] += in_double<T, n>(factors[i * factor_stride] * values);
      });
    }
    __builtin_memcpy(sums, &totals, sizeof totals);
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      const T factor = factors[i * factor_stride];
      for (std::int64_t k = 0; k < width; ++k) {
        sums[k] += static_cast<double>(factor * x[i * x_stride + k]);
      }
    }
  }
}

template <class T, int Width>
void dot_backward(const HeadRows<T>& rows, const T* grad_y, std::int64_t grad_y_stride, T* grad_x,
                  std::int64_t grad_x_stride, double* sums) {
  constexpr std::int64_t rows_at_once = 16;
  const std::int64_t width = Width > 0 ? Width : rows.width;
  for (std::int64_t first = 0; first < rows.rows; first += rows_at_once) {
    const std::int64_t left = rows.rows - first;
    const std::int64_t count = left < rows_at_once ? left : rows_at_once;
    const T* const factors = grad_y + first * grad_y_stride;
    for (std::int64_t h = 0; h < rows.heads && sums != nullptr; ++h) {
      add_products<T, Width>(rows.x + first * rows.x_stride + h * width, rows.x_stride, factors + h,
                             grad_y_stride, count, width, sums + h * width);
    }
    for (std::int64_t i = 0; i < count && grad_x != nullptr; ++i) {
      for (std::int64_t h = 0; h < rows.heads; ++h) {
        add_scaled_vector<T, Width>(factors[i * grad_y_stride + h], rows.vector + h * width, width,
                                    grad_x + (first + i) * grad_x_stride + h * width);
      }
    }
  }
}

/// Calls run.template operator()<Width>() with the width if it is one of those that are compiled
/// in, which spares loops over few elements, else with 0.
template <class Run>
TESSERA_INLINE void with_width(std::int64_t width, Run&& run) {
  bool found = false;
  unrolled<8>([&](auto i) {
    if (width == i.value + 1) {
      run.template operator()<i.value + 1>();
      found = true;
    }
  });
  if (!found) run.template operator()<0>();
}

template <class T>
void dot_of_width(const HeadRows<T>& rows, T* y, std::int64_t y_stride) {
  with_width(rows.width, [&]<int Width>() { dot<T, Width>(rows, y, y_stride); });
}

template <class T>
void dot_backward_of_width(const HeadRows<T>& rows, const T* grad_y, std::int64_t grad_y_stride,
                           T* grad_x, std::int64_t grad_x_stride, double* sums) {
  with_width(rows.width, [&]<int Width>() {
    dot_backward<T, Width>(rows, grad_y, grad_y_stride, grad_x, grad_x_stride, sums);
  });
}

template <class T>
constexpr HeadFunctions<T> functions_of = {dot_of_width<T>, dot_backward_of_width<T>};

}  // namespace

const ByArithmetic<HeadFunctions>& head_products_table() {
  static constexpr ByArithmetic<HeadFunctions> table = {functions_of<double>, functions_of<float>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
