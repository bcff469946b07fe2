// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "ops/activation/cuda/formula.cuh"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"

namespace tessera::ops {
namespace {

/// The gradient of what was normalised, before the activation that follows. Its sign is that of
/// the result, which is 0 where dropout took it.
template <class T>
struct ActivatedGradient {
  cuda::Rows<const T> grad_y;
  cuda::Rows<const T> y;  ///< absent without an activation
  DeviceFormula formula;

  template <int width, bool aligned>
  __device__ void load(const cuda::Elements<width, aligned>& place,
                       float (&gradients)[width]) const {
    place.load(grad_y, gradients);
    formula.drop(place.element(), gradients);
    if (formula.activation == Activation::none) return;
    float results[width];
    place.load(y, results);
#pragma unroll
    for (int i = 0; i < width; ++i) gradients[i] *= formula.derivative(results[i]);
  }
};

/// The sums of the gradient and of the gradient * normalised x.
template <class T>
struct GradientSums {
  cuda::Rows<const T> x;
  ActivatedGradient<T> gradient;
  const float* gamma;  ///< may be null, as the two gradients
  const float* mean;
  const float* inverse_deviation;
  float* grad_gamma;
  float* grad_beta;
  std::int64_t rows;
  cuda::ColumnNumbers* columns;

  static constexpr int num_sums = 2;
  using Term = float;

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, float (&terms)[2][width]) const {
    float values[width];
    place.load(x, values);
    gradient.load(place, terms[0]);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= place.count) break;
      const float normalised = (values[i] - mean[place.col + i]) * inverse_deviation[place.col + i];
      terms[1][i] = terms[0][i] * normalised;
    }
  }

  /// Leaves a * ... for the pass that follows: factor, mean gradient, mean weighted gradient.
  __device__ void finish(std::int64_t col, const double (&totals)[2]) const {
    if (grad_beta != nullptr) grad_beta[col] = static_cast<float>(totals[0]);
    if (grad_gamma != nullptr) grad_gamma[col] = static_cast<float>(totals[1]);
    const auto count = static_cast<double>(rows > 0 ? rows : 1);
    const double factor =
        (gamma == nullptr ? 1.0 : gamma[col]) * static_cast<double>(inverse_deviation[col]);
    columns[col] = {static_cast<float>(factor), static_cast<float>(totals[0] / count),
                    static_cast<float>(totals[1] / count), 0};
  }
};

/// dX of one place; where a bias was added to x also its sum over the rows.
template <class T>
struct GradientOfInput {
  cuda::Rows<const T> x;
  ActivatedGradient<T> gradient;
  cuda::Rows<T> grad_x;
  const float* mean;
  const float* inverse_deviation;
  const cuda::ColumnNumbers* columns;
  T* grad_shift;

  static constexpr int num_sums = 1;
  using Term = float;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float gradients[1][width];
    row(place, gradients);
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place,
                      float (&gradients)[1][width]) const {
    float values[width];
    place.load(x, values);
    gradient.load(place, gradients[0]);
    place.each([&](int i, std::int64_t, std::int64_t col) {
      const cuda::ColumnNumbers column = columns[col];
      const float normalised = (values[i] - mean[col]) * inverse_deviation[col];
      gradients[0][i] = column.a * (gradients[0][i] - column.b - normalised * column.c);
    });
    place.store(gradients[0], grad_x);
  }

  __device__ void finish(std::int64_t col, const double (&totals)[1]) const {
    grad_shift[col] = cuda::narrow<T>(static_cast<float>(totals[0]));
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
    const ActivatedGradient<T> before{rows_of<T>(call.grad_y), rows_of<T>(call.y),
                                      DeviceFormula(call.formula)};
    const GradientSums<T> sums{rows_of<T>(x),
                               before,
                               values_of<float>(call.gamma),
                               values_of<float>(call.saved_mean),
                               values_of<float>(call.saved_inverse_deviation),
                               values_of<float>(call.grad_gamma),
                               values_of<float>(call.grad_beta),
                               x.rows,
                               parts.columns};
    const auto extent =
        cuda::Extent{x.rows, x.cols}.with(sums.x).with(before.grad_y).with(before.y);
    cuda::for_columns<width>(extent, sums, parts, stream);
    if (call.grad_x.absent()) return;
    const GradientOfInput<T> gradient{sums.x,
                                      before,
                                      rows_of<T>(call.grad_x),
                                      sums.mean,
                                      sums.inverse_deviation,
                                      parts.columns,
                                      values_of<T>(call.grad_shift)};
    const auto written = cuda::Extent(extent).with(gradient.grad_x);
    if (call.grad_shift.absent()) {
      cuda::for_elements<width>(written, gradient, stream);
    } else {
      cuda::for_columns<width>(written, gradient, parts, stream);
    }
  });
}

}  // namespace tessera::ops
