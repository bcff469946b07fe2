// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "ops/activation/cuda/formula.cuh"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/gradient_source.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"
#include "ops/gemm/cuda/normed_launch.hpp"

namespace tessera::ops {
namespace {

/// What both passes know of a column, and of a place in it. The activation's argument is computed
/// again, which costs less than to read its result.
template <class T, class Gradient>
struct Normalised {
  cuda::Rows<const T> x;
  Gradient grad_y;
  const float* mean;
  const float* inverse_deviation;
  const float* gamma;  ///< may be null, as beta
  const float* beta;
  DeviceFormula formula;

  template <int width>
  struct Columns {
    float mean[width], inverse_deviation[width], gamma[width], beta[width];
  };
  template <int width>
  struct Fetched {
    float values[width], gradients[width];
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
    Fetched<width> fetched;
    place.load(x, fetched.values);
    grad_y.load(place, fetched.gradients);
    return fetched;
  }

  /// Normalised x, and the gradient before the activation.
  template <int width, bool aligned>
  __device__ void find(const cuda::Elements<width, aligned>& place, const Columns<width>& columns,
                       const Fetched<width>& fetched, float (&normalised)[width],
                       float (&gradients)[width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      normalised[i] = (fetched.values[i] - columns.mean[i]) * columns.inverse_deviation[i];
      gradients[i] = fetched.gradients[i];
    }
    formula.drop(place.element(), gradients);
    if (formula.activation == Activation::none) return;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      gradients[i] *= formula.derivative(normalised[i] * columns.gamma[i] + columns.beta[i]);
    }
  }
};

/// The sums of the gradient and of the gradient * normalised x.
template <class T, class Gradient>
struct GradientSums {
  Normalised<T, Gradient> normalised;
  float* grad_gamma;  ///< may be null, as the next two
  float* grad_beta;
  T* grad_shift;
  std::int64_t rows;
  cuda::ColumnNumbers* left;
  GradientColumn* columns_left;  ///< for whoever makes dX; may be null

  static constexpr int num_sums = 2;
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

/// Where the sums are known, the second one of the gradient * distances from the mean.
template <class Sums>
__global__ void columns_of_sums(std::int64_t cols, cuda::Rows<const double> sums,
                                const Sums function) {
  cuda::begin_overlapped();
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  const double totals[2] = {sums.data[col],
                            sums.data[sums.stride + col] *
                                static_cast<double>(function.normalised.inverse_deviation[col])};
  function.finish(col, totals);
}

/// dX.
template <class T, class Gradient>
struct GradientOfInput {
  Normalised<T, Gradient> normalised;
  cuda::Rows<T> grad_x;
  const cuda::ColumnNumbers* numbers;

  static constexpr int num_sums = 0;
  using Term = float;

  template <int width>
  struct Columns : Normalised<T, Gradient>::template Columns<width> {
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

}  // namespace

void CudaDenseOps::batch_norm_backward(const BatchNormGradCall& call, Stream stream,
                                       const DenseWorkspace* workspace) const {
  const ConstOperand& x = call.x;
  if (x.cols == 0) return;
  require_columns(x.cols);
  const cuda_backend::CurrentDevice current(device_.index);
  const DenseWorkspaceUse use(workspace, "batch_norm", device_, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    constexpr int width = cuda::chunk<T>;
    const auto run = [&](const auto& grad_y) {
      using Gradient = std::decay_t<decltype(grad_y)>;
      const Normalised<T, Gradient> normalised{rows_of<T>(x),
                                               grad_y,
                                               values_of<float>(call.saved_mean),
                                               values_of<float>(call.saved_inverse_deviation),
                                               values_of<float>(call.gamma),
                                               values_of<float>(call.beta),
                                               DeviceFormula(call.formula)};
      const auto extent = grad_y.extend(cuda::Extent{x.rows, x.cols}.with(normalised.x));
      const GradientSums<T, Gradient> sums{normalised,
                                           values_of<float>(call.grad_gamma),
                                           values_of<float>(call.grad_beta),
                                           values_of<T>(call.grad_shift),
                                           x.rows,
                                           parts.columns,
                                           static_cast<GradientColumn*>(call.grad_columns.data)};
      const bool knows_sums = !call.sums.absent();
      if (knows_sums) {
        cuda::launch_overlapped(columns_of_sums<GradientSums<T, Gradient>>,
                                dim3(cuda::num_blocks(x.cols, 256)), 256, stream, x.cols,
                                rows_of<double>(call.sums), sums);
      }
      if (call.grad_x.absent()) {
        if (!knows_sums) cuda::for_long_columns<width>(extent, sums, parts, stream);
        return;
      }
      const GradientOfInput<T, Gradient> gradient{normalised, rows_of<T>(call.grad_x),
                                                  parts.columns};
      const auto with_result = cuda::Extent(extent).with(gradient.grad_x);
      if (knows_sums) {
        cuda::for_long_columns<width>(with_result, gradient, parts, stream);
      } else if constexpr (std::is_same_v<Gradient, ProductGradient<T>>) {
        cuda::for_long_columns<width>(with_result, sums, parts, stream);
        cuda::for_long_columns<width>(with_result, gradient, parts, stream);
      } else {
        cuda::for_columns_twice<width>(with_result, sums, gradient, parts, stream);
      }
    };
    if (call.factors.absent()) {
      run(MatrixGradient<T>{rows_of<T>(call.grad_y)});
    } else {
      run(ProductGradient<T>(call.factors));
    }
  });
}

}  // namespace tessera::ops
