// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"

namespace tessera::ops {
namespace {

/// The sums of grad_y and of grad_y * normalised x.
template <class T>
struct GradientSums {
  cuda::Rows<const T> x;
  cuda::Rows<const T> grad_y;
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
    place.load(grad_y, terms[0]);
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

template <class T>
struct GradientOfInput {
  cuda::Rows<const T> x;
  cuda::Rows<const T> grad_y;
  cuda::Rows<T> grad_x;
  const float* mean;
  const float* inverse_deviation;
  const cuda::ColumnNumbers* columns;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float values[width], gradients[width];
    place.load(x, values);
    place.load(grad_y, gradients);
    place.each([&](int i, std::int64_t, std::int64_t col) {
      const cuda::ColumnNumbers column = columns[col];
      const float normalised = (values[i] - mean[col]) * inverse_deviation[col];
      gradients[i] = column.a * (gradients[i] - column.b - normalised * column.c);
    });
    place.store(gradients, grad_x);
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
    const GradientSums<T> sums{rows_of<T>(x),
                               rows_of<T>(call.grad_y),
                               values_of<float>(call.gamma),
                               values_of<float>(call.saved_mean),
                               values_of<float>(call.saved_inverse_deviation),
                               values_of<float>(call.grad_gamma),
                               values_of<float>(call.grad_beta),
                               x.rows,
                               parts.columns};
    const auto extent = cuda::Extent{x.rows, x.cols}.with(sums.x).with(sums.grad_y);
    cuda::for_columns<width>(extent, sums, parts, stream);
    if (call.grad_x.absent()) return;
    const GradientOfInput<T> gradient{
        sums.x,       sums.grad_y, rows_of<T>(call.grad_x), sums.mean, sums.inverse_deviation,
        parts.columns};
    cuda::for_elements<width>(cuda::Extent(extent).with(gradient.grad_x), gradient, stream);
  });
}

}  // namespace tessera::ops
