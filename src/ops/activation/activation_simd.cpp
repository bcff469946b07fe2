// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/kernels.hpp"
#include "ops/simd/dropout.hpp"
#include "ops/simd/exp.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

// Each activation, in vectors of N lanes: its value at z, and its derivative there. `c` is the
// slope or alpha. The comparisons are such that a not-a-number passes.
struct None {
  template <int N, class T>
  static Lanes<T, N> value(Lanes<T, N> z, T) {
    return z;
  }
  template <int N, class T>
  static Lanes<T, N> derivative(Lanes<T, N>, T) {
    return Lanes<T, N>{} + T{1};
  }
};

struct Relu {
  template <int N, class T>
  static Lanes<T, N> value(Lanes<T, N> z, T) {
    return select_where<T, N>(z <= T{0}, Lanes<T, N>{}, z);
  }
  template <int N, class T>
  static Lanes<T, N> derivative(Lanes<T, N> z, T) {
    return select_where<T, N>(z <= T{0}, Lanes<T, N>{}, Lanes<T, N>{} + T{1});
  }
};

struct LeakyRelu {
  template <int N, class T>
  static Lanes<T, N> value(Lanes<T, N> z, T c) {
    return select_where<T, N>(z > T{0}, z, Lanes<T, N>(c * z));
  }
  template <int N, class T>
  static Lanes<T, N> derivative(Lanes<T, N> z, T c) {
    return select_where<T, N>(z > T{0}, Lanes<T, N>{} + T{1}, Lanes<T, N>{} + c);
  }
};

struct Elu {
  template <int N, class T>
  static Lanes<T, N> value(Lanes<T, N> z, T c) {
    return select_where<T, N>(z > T{0}, z, Lanes<T, N>(c * exp_minus_one_lanes<T, N>(z)));
  }
  template <int N, class T>
  static Lanes<T, N> derivative(Lanes<T, N> z, T c) {
    return select_where<T, N>(z > T{0}, Lanes<T, N>{} + T{1}, Lanes<T, N>(c * exp_lanes<T, N>(z)));
  }
};

/// Calls `body.template operator()<N>(j)` for vectors of N elements from j on, then for shorter
/// ones and at last for a single one.
template <class T, int N = lanes<T>, class Body>
TESSERA_INLINE void for_vectors(std::int64_t count, Body&& body, std::int64_t j = 0) {
  for (; j + N <= count; j += N) body.template operator()<N>(j);
  if constexpr (N > 1) for_vectors<T, N / 2>(count, body, j);
}

template <class Function, class T>
void forward_run(const T* x, const T* bias, const T* factors, T constant, T* y,
                 std::int64_t count) {
  for_vectors<T>(
      count, [&]<int N>(std::int64_t j) __attribute__((always_inline)) {
        const Lanes<T, N> z = load_lanes<N>(x + j) + load_lanes<N>(bias + j);
        const Lanes<T, N> value = Function::template value<N>(z, constant);
        store_lanes<N>(y + j, Lanes<T, N>(value * load_lanes<N>(factors + j)));
      });
}

template <class Function, class T>
void backward_run(const T* x, const T* bias, const T* factors, T constant, const T* grad_y,
                  T* gradient, std::int64_t count) {
  for_vectors<T>(
      count, [&]<int N>(std::int64_t j) __attribute__((always_inline)) {
        const Lanes<T, N> z = load_lanes<N>(x + j) + load_lanes<N>(bias + j);
        const Lanes<T, N> grad = load_lanes<N>(grad_y + j) * load_lanes<N>(factors + j);
        store_lanes<N>(gradient + j,
                       Lanes<T, N>(grad * Function::template derivative<N>(z, constant)));
      });
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

/// Calls `run.template operator()<Function>(constant)` with the formula's activation.
template <class T, class Run>
TESSERA_INLINE void with_function(const ActivationFormula& formula, Run&& run) {
  switch (formula.activation) {
    case Activation::none: return run.template operator()<None>(T{0});
    case Activation::relu: return run.template operator()<Relu>(T{0});
    case Activation::leaky_relu:
      return run.template operator()<LeakyRelu>(static_cast<T>(formula.slope));
    case Activation::elu: return run.template operator()<Elu>(static_cast<T>(formula.alpha));
  }
}

template <class T>
void forward(const ActivationFormula& formula, const ActivationRows<T>& rows) {
  with_function<T>(formula, [&]<class Function>(T constant) {
    forward_rows<Function>(formula, rows, constant);
  });
}

template <class T>
void backward(const ActivationFormula& formula, const ActivationRows<T>& rows) {
  with_function<T>(formula, [&]<class Function>(T constant) {
    backward_rows<Function>(formula, rows, constant);
  });
}

}  // namespace

const ByArithmetic<ActivationFunctions>& activation_table() {
  static constexpr ByArithmetic<ActivationFunctions> table = {{forward<double>, backward<double>},
                                                              {forward<float>, backward<float>}};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
