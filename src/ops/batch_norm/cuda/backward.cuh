// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "cuda/sums.cuh"
#include "ops/cuda/gradient_source.cuh"
#include "ops/dense/cuda/activation_formula.cuh"
#include "ops/gemm/cuda/normed_launch.hpp"

/// The two passes of batch norm's gradient over a matrix.
namespace tessera::ops {

/// What both passes know of a column, and of a place in it. The activation's argument is computed
/// again, which costs less than to read its result.
template <class T, class Gradient, class Formula>
struct Normalised {
  cuda::Rows<const T> x;
  Gradient grad_y;
  const float* mean;
  const float* inverse_deviation;
  const float* gamma;  ///< may be null, as beta
  const float* beta;
  Formula formula;

  /// Where the formula is short, there are registers for more.
  static constexpr bool has_room = sizeof(T) == 2 && std::is_same_v<Formula, ShortFormula>;
  static constexpr int rows_ahead = !has_room                                     ? 2
                                    : std::is_same_v<Gradient, MatrixGradient<T>> ? 4
                                                                                  : 3;

  template <int width>
  struct Columns {
    float mean[width], inverse_deviation[width], gamma[width], beta[width];
  };
  template <int width>
  struct Fetched {
    cuda::Pack<T, width> x;
    typename Gradient::template Fetched<width> gradient;
  };

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    Columns<width> columns;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      columns.mean[i] = mean[place.col + i];
      columns.inverse_deviation[i] = inverse_deviation[place.col + i];
      columns.gamma[i] = gamma == nullptr ? 1.0f : gamma[place.col + i];
      columns.beta[i] = beta == nullptr ? 0.0f : beta[place.col + i];
    }
    return columns;
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place) const {
    return {cuda::fetch_pack(place, x), grad_y.fetch(place)};
  }

  /// Normalised x, and the gradient before the activation.
  template <int width, bool aligned>
  __device__ void find(const cuda::Elements<width, aligned>& place, const Columns<width>& columns,
                       const Fetched<width>& fetched, float (&normalised)[width],
                       float (&gradients)[width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      normalised[i] =
          (cuda::widen(fetched.x.values[i]) - columns.mean[i]) * columns.inverse_deviation[i];
    }
    grad_y.find(place, fetched.gradient, gradients);
    formula.drop(place.element(), gradients);
    if (formula.activation == Activation::none) return;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      gradients[i] *= formula.derivative(normalised[i] * columns.gamma[i] + columns.beta[i]);
    }
  }
};

/// The sums of the gradient and of the gradient * normalised x.
template <class T, class Gradient, class Formula>
struct NormGradientSums {
  Normalised<T, Gradient, Formula> normalised;
  float* grad_gamma;  ///< may be null, as the next two
  float* grad_beta;
  T* grad_shift;
  std::int64_t rows;
  cuda::ColumnNumbers* left;
  GradientColumn* columns_left;  ///< for the kernel that makes dX; may be null

  static constexpr int num_sums = 2;
  static constexpr int rows_ahead = Normalised<T, Gradient, Formula>::rows_ahead;
  using Term = float;

  template <int width, bool aligned>
  __device__ auto columns(const cuda::Elements<width, aligned>& place) const {
    return normalised.columns(place);
  }

  template <int width, bool aligned, class Columns>
  __device__ auto fetch(const cuda::Elements<width, aligned>& place, const Columns&) const {
    return normalised.fetch(place);
  }

  template <int width, bool aligned, class Columns, class Fetched>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Columns& columns,
                      const Fetched& fetched, float (&terms)[2][width]) const {
    normalised.find(place, columns, fetched, terms[1], terms[0]);
#pragma unroll
    for (int i = 0; i < width; ++i) terms[1][i] *= terms[0][i];
  }

  struct Known {};
  __device__ Known known(std::int64_t) const { return {}; }

  /// The mean gradient and the mean weighted gradient.
  __device__ cuda::ColumnNumbers numbers(const Known&, const double (&totals)[2]) const {
    const auto count = static_cast<double>(rows > 0 ? rows : 1);
    return {static_cast<float>(totals[0] / count), static_cast<float>(totals[1] / count), 0, 0};
  }

  __device__ void finish(std::int64_t col, const Known&, const double (&totals)[2]) const {
    if (grad_beta != nullptr) grad_beta[col] = static_cast<float>(totals[0]);
    if (grad_gamma != nullptr) grad_gamma[col] = static_cast<float>(totals[1]);
    // What is added to a whole column is taken away with the mean. The factors tell whether
    // something was not finite.
    if (grad_shift != nullptr) {
      const float factor = normalised.gamma == nullptr ? 1.0f : normalised.gamma[col];
      grad_shift[col] = cuda::narrow<T>(fabsf(0.0f * static_cast<float>(totals[0] + totals[1]) *
                                              normalised.inverse_deviation[col] * factor));
    }
  }

  /// Leaves the numbers for a launch that follows.
  __device__ void finish(std::int64_t col, const double (&totals)[2]) const {
    finish(col, Known{}, totals);
    left[col] = numbers({}, totals);
    if (columns_left == nullptr) return;
    const float deviation = normalised.inverse_deviation[col];
    const float factor = normalised.gamma == nullptr ? 1.0f : normalised.gamma[col];
    columns_left[col] = {normalised.mean[col],
                         factor * deviation,
                         normalised.beta == nullptr ? 0.0f : normalised.beta[col],
                         left[col].a,
                         deviation * left[col].b,
                         {}};
  }
};

/// dX.
template <class T, class Gradient, class Formula>
struct GradientOfInput {
  Normalised<T, Gradient, Formula> normalised;
  cuda::Rows<T> grad_x;
  const cuda::ColumnNumbers* numbers;

  static constexpr int num_sums = 0;
  static constexpr int rows_ahead = Normalised<T, Gradient, Formula>::rows_ahead;
  using Term = float;

  template <int width>
  struct Columns : Normalised<T, Gradient, Formula>::template Columns<width> {
    float mean_gradient[width], mean_weighted[width];
  };

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    return columns(place, numbers + place.col);
  }

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place,
                                    const cuda::ColumnNumbers* given) const {
    Columns<width> columns{normalised.columns(place), {}, {}};
#pragma unroll
    for (int i = 0; i < width; ++i) {
      columns.mean_gradient[i] = given[i].a;
      columns.mean_weighted[i] = given[i].b;
    }
    return columns;
  }

  template <int width, bool aligned>
  __device__ auto fetch(const cuda::Elements<width, aligned>& place, const Columns<width>&) const {
    return normalised.fetch(place);
  }

  template <int width, bool aligned, class Fetched>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Columns<width>& columns,
                      const Fetched& fetched, float (&gradients)[1][width]) const {
    float distances[width];
    normalised.find(place, columns, fetched, distances, gradients[0]);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      gradients[0][i] =
          columns.gamma[i] * columns.inverse_deviation[i] *
          (gradients[0][i] - columns.mean_gradient[i] - distances[i] * columns.mean_weighted[i]);
    }
    place.store(gradients[0], grad_x);
  }
};

}  // namespace tessera::ops
