// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"

namespace tessera::ops {
namespace {

template <class T>
struct HeadDot {
  cuda::Rows<const T> x;
  const T* vector;
  cuda::Rows<T> y;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    double sum = 0;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width], weights[width];
      place.load(x, values);
      place.load_columns(vector, weights);
      float part = 0;
#pragma unroll
      for (int i = 0; i < width; ++i) part += values[i] * weights[i];
      sum += static_cast<double>(part);
    });
    sum = team.sum(sum);
    if (!has_row || team.lane != 0) return;
    const std::int64_t head = team.begin / (team.end - team.begin);
    y.data[team.row * y.stride + head] = cuda::narrow<T>(static_cast<float>(sum));
  }
};

/// Chunks stay within a head.
template <class T>
struct HeadDotBackward {
  cuda::Rows<const T> x;
  const T* vector;
  cuda::Rows<const T> grad_y;
  cuda::Rows<T> grad_x;  ///< may be absent
  T* grad_vector;
  std::int64_t head_width;

  static constexpr int num_sums = 1;
  static constexpr int rows_ahead = 2;
  using Term = float;

  template <int width>
  struct Columns {
    std::int64_t head;
    float weights[width];
  };
  template <int width>
  struct Fetched {
    float values[width], gradients[width], factor;
  };

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float terms[1][width];
    const auto of_columns = columns(place);
    row(place, of_columns, fetch(place, of_columns), terms);
  }

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    Columns<width> columns;
    columns.head = place.col / head_width;
    place.load_columns(vector, columns.weights);
    return columns;
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Columns<width>& columns) const {
    Fetched<width> fetched;
    place.load(x, fetched.values);
    if (grad_x.data != nullptr) {
      place.load(cuda::Rows<const T>{grad_x.data, grad_x.stride}, fetched.gradients);
    }
    fetched.factor = cuda::widen(grad_y.data[place.row * grad_y.stride + columns.head]);
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Columns<width>& columns,
                      const Fetched<width>& fetched, float (&terms)[1][width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) terms[0][i] = fetched.factor * fetched.values[i];
    if (grad_x.data == nullptr) return;
    float gradients[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      gradients[i] = fetched.gradients[i] + fetched.factor * columns.weights[i];
    }
    place.store(gradients, grad_x);
  }

  __device__ void finish(std::int64_t col, const double (&totals)[1]) const {
    grad_vector[col] = cuda::narrow<T>(static_cast<float>(totals[0]));
  }
};

}  // namespace

void CudaDenseOps::head_dot(ConstOperand x, ConstOperand vector, Operand y, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const HeadDot<T> function{rows_of<T>(x), values_of<T>(vector), rows_of<T>(y)};
    const auto extent =
        cuda::Extent{x.rows, x.cols}.with(function.x).with(columns_of(function.vector));
    cuda::for_rows<cuda::chunk<T>>(extent, y.cols, function, stream);
  });
}

void CudaDenseOps::head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y,
                                     Operand grad_x, Operand grad_vector, Stream stream,
                                     const DenseWorkspace* workspace) const {
  if (x.cols == 0) return;
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    constexpr int width = cuda::chunk<T>;
    const HeadDotBackward<T> function{
        rows_of<T>(x),      values_of<T>(vector),      rows_of<T>(grad_y),
        rows_of<T>(grad_x), values_of<T>(grad_vector), x.cols / grad_y.cols};
    auto extent = cuda::Extent{x.rows, x.cols}
                      .with(function.x)
                      .with(function.grad_x)
                      .with(columns_of(function.vector));
    extent.aligned = extent.aligned && function.head_width % width == 0;
    if (!grad_vector.absent()) {
      const DenseWorkspaceUse use(workspace, "the gradient of head_dot", device_, stream);
      cuda::for_columns<width>(extent, function, cuda::workspace_in(use.data()), stream);
    } else if (!grad_x.absent()) {
      cuda::for_elements<width, 1>(extent, function, stream);
    }
  });
}

}  // namespace tessera::ops
