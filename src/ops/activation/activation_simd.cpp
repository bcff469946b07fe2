// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/kernels.hpp"
#include "ops/simd/dropout.hpp"
#include "ops/simd/exp.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// `a` where the mask of a comparison is set, else `b`.
template <class T, int N, class Mask>
TESSERA_INLINE Lanes<T, N> select(Mask mask, Lanes<T, N> a, Lanes<T, N> b) {
  return mask ? a : b;
}

// Each activation: its value at z, and its derivative there. `c` is the slope or alpha. The
// comparisons are such that a not-a-number passes.
struct None {
  template <class T>
  static T value(T z, T) {
    return z;
  }
  template <class T>
  static T derivative(T, T) {
    return T{1};
  }
};

struct Relu {
  template <class T>
  static T value(T z, T) {
    return z <= T{0} ? T{0} : z;
  }
  template <class T>
  static T derivative(T z, T) {
    return z <= T{0} ? T{0} : T{1};
  }
};

struct LeakyRelu {
  template <class T>
  static T value(T z, T c) {
    return z > T{0} ? z : c * z;
  }
  template <class T>
  static T derivative(T z, T c) {
    return z > T{0} ? T{1} : c;
  }
};

/// In vectors of N lanes, since compilers call a function for each element otherwise.
struct Elu {
  template <int N, class T>
  static Lanes<T, N> value(Lanes<T, N> z, T c) {
    return select<T, N>(z > T{0}, z, Lanes<T, N>(c * exp_minus_one_lanes<T, N>(z)));
  }
  template <int N, class T>
  static Lanes<T, N> derivative(Lanes<T, N> z, T c) {
    return select<T, N>(z > T{0}, Lanes<T, N>{} + T{1}, Lanes<T, N>(c * exp_lanes<T, N>(z)));
  }
};

/// Calls `body.template operator()<N>(j)` for vectors of N elements from j on, then for single
/// ones.
template <class T, class Body>
TESSERA_INLINE void for_vectors(std::int64_t count, Body&& body) {
  std::int64_t j = 0;
  for (; j + lanes<T> <= count; j += lanes<T>) body.template operator()<lanes<T>>(j);
  for (; j < count; ++j) body.template operator()<1>(j);
}

template <class Function, class T>
void forward_run(const T* x, const T* bias, const T* factors, T constant, T* y,
                 std::int64_t count) {
  if constexpr (std::is_same_v<Function, Elu>) {
    for_vectors<T>(
        count, [&]<int N>(std::int64_t j) __attribute__((always_inline)) {
          const Lanes<T, N> z = load_lanes<N>(x + j) + load_lanes<N>(bias + j);
          const Lanes<T, N> value = Elu::value<N>(z, constant);
          store_lanes<N>(y + j, Lanes<T, N>(value * load_lanes<N>(factors + j)));
        });
  } else {
    for (std::int64_t j = 0; j < count; ++j) {
      y[j] = Function::value(x[j] + bias[j], constant) * factors[j];
    }
  }
}

template <class Function, class T>
void backward_run(const T* x, const T* bias, const T* factors, T constant, const T* grad_y,
                  T* gradient, std::int64_t count) {
  if constexpr (std::is_same_v<Function, Elu>) {
    for_vectors<T>(
        count, [&]<int N>(std::int64_t j) __attribute__((always_inline)) {
          const Lanes<T, N> z = load_lanes<N>(x + j) + load_lanes<N>(bias + j);
          const Lanes<T, N> grad = load_lanes<N>(grad_y + j) * load_lanes<N>(factors + j);
          store_lanes<N>(gradient + j, Lanes<T, N>(grad * Elu::derivative<N>(z, constant)));
        });
  } else {
    for (std::int64_t j = 0; j < count; ++j) {
      gradient[j] = grad_y[j] * factors[j] * Function::derivative(x[j] + bias[j], constant);
    }
  }
}

/// Elements whose dropout factors are drawn at once: several short rows, or a piece of a long one.
constexpr std::int64_t batch = 1024;

/// Calls `body(row, col, count, factors)` on pieces of rows in order.
template <class T, class Body>
void for_each_piece(const ActivationFormula& formula, const ActivationRows<T>& rows, Body body) {
  if (rows.cols == 0) return;
  T factors[batch];
  for (T& factor : factors) factor = T{1};
  const std::int64_t width = rows.cols < batch ? rows.cols : batch;
  const std::int64_t rows_at_once = rows.cols < batch ? batch / rows.cols : 1;
  for (std::int64_t first = 0; first < rows.rows; first += rows_at_once) {
    const std::int64_t left = rows.rows - first;
    const std::int64_t height = left < rows_at_once ? left : rows_at_once;
    for (std::int64_t col = 0; col < rows.cols; col += width) {
      const std::int64_t count = rows.cols - col < width ? rows.cols - col : width;
      if (formula.drops) {
        const auto offset = static_cast<std::uint64_t>(first * rows.cols + col);
        dropout_factors(formula.dropout, rows.first_element + offset, height * count, factors);
      }
      for (std::int64_t i = 0; i < height; ++i) body(first + i, col, count, factors + i * count);
    }
  }
}

template <class Function, class T>
void forward_rows(const ActivationFormula& formula, const ActivationRows<T>& rows, T constant) {
  for_each_piece(
      formula, rows, [&](std::int64_t i, std::int64_t col, std::int64_t count, const T* factors) {
        forward_run<Function>(rows.x + i * rows.x_stride + col, rows.bias + col, factors, constant,
                              rows.output + i * rows.output_stride + col, count);
      });
}

template <class Function, class T>
void backward_rows(const ActivationFormula& formula, const ActivationRows<T>& rows, T constant) {
  T scratch[batch];
  for_each_piece(
      formula, rows, [&](std::int64_t i, std::int64_t col, std::int64_t count, const T* factors) {
        T* const gradient =
            rows.output != nullptr ? rows.output + i * rows.output_stride + col : scratch;
        backward_run<Function>(rows.x + i * rows.x_stride + col, rows.bias + col, factors, constant,
                               rows.grad_y + i * rows.grad_y_stride + col, gradient, count);
        if (rows.bias_sums == nullptr) return;
        double* const sums = rows.bias_sums + col;
        for (std::int64_t j = 0; j < count; ++j) {
          sums[j] += static_cast<double>(gradient[j]);
        }
      });
}

template <class T>
void forward(const ActivationFormula& formula, const ActivationRows<T>& rows) {
  switch (formula.activation) {
    case Activation::none: return forward_rows<None, T>(formula, rows, T{0});
    case Activation::relu: return forward_rows<Relu, T>(formula, rows, T{0});
    case Activation::leaky_relu:
      return forward_rows<LeakyRelu, T>(formula, rows, static_cast<T>(formula.slope));
    case Activation::elu: return forward_rows<Elu, T>(formula, rows, static_cast<T>(formula.alpha));
  }
}

template <class T>
void backward(const ActivationFormula& formula, const ActivationRows<T>& rows) {
  switch (formula.activation) {
    case Activation::none: return backward_rows<None, T>(formula, rows, T{0});
    case Activation::relu: return backward_rows<Relu, T>(formula, rows, T{0});
    case Activation::leaky_relu:
      return backward_rows<LeakyRelu, T>(formula, rows, static_cast<T>(formula.slope));
    case Activation::elu:
      return backward_rows<Elu, T>(formula, rows, static_cast<T>(formula.alpha));
  }
}

}  // namespace

const ActivationTable& activation_table() {
  static const ActivationTable table = {forward<float>, forward<double>, backward<float>,
                                        backward<double>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
