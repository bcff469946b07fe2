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

/// One head of one row with each of two vectors.
template <class T>
struct HeadDots {
  cuda::Rows<const T> x;
  const T* vectors[2];
  cuda::Rows<T> y[2];

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    double sums[2] = {0, 0};
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        float weights[width];
        place.load_columns(vectors[v], weights);
        float part = 0;
#pragma unroll
        for (int i = 0; i < width; ++i) part += values[i] * weights[i];
        sums[v] += static_cast<double>(part);
      }
    });
#pragma unroll
    for (int v = 0; v < 2; ++v) sums[v] = team.sum(sums[v]);
    if (!has_row || team.lane != 0) return;
    const std::int64_t head = team.begin / (team.end - team.begin);
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      y[v].data[team.row * y[v].stride + head] = cuda::narrow<T>(static_cast<float>(sums[v]));
    }
  }
};

/// Chunks stay within a head.
template <class T>
struct HeadDotsBackward {
  cuda::Rows<const T> x;
  const T* vectors[2];
  cuda::Rows<const T> grad_y[2];
  cuda::Rows<T> grad_x;
  T* grad_vectors[2];
  std::int64_t head_width;

  static constexpr int num_sums = 2;
  static constexpr int rows_ahead = 2;
  using Term = float;

  template <int width>
  struct Columns {
    std::int64_t head;
    float weights[2][width];
  };
  /// As it lies: to widen it would be to wait for each row before the next is asked for.
  template <int width>
  struct Fetched {
    cuda::Pack<T, width> values, gradients;
    T factors[2];
  };

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    Columns<width> columns;
    columns.head = place.col / head_width;
#pragma unroll
    for (int v = 0; v < 2; ++v) place.load_columns(vectors[v], columns.weights[v]);
    return columns;
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Columns<width>& columns) const {
    Fetched<width> fetched;
    fetched.values = cuda::fetch_pack(place, x);
    fetched.gradients = cuda::fetch_pack(place, cuda::Rows<const T>{grad_x.data, grad_x.stride});
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      fetched.factors[v] = grad_y[v].data[place.row * grad_y[v].stride + columns.head];
    }
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Columns<width>& columns,
                      const Fetched<width>& fetched, float (&terms)[2][width]) const {
    float gradients[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      gradients[i] = cuda::widen(fetched.gradients.values[i]);
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const float factor = cuda::widen(fetched.factors[v]);
        gradients[i] += factor * columns.weights[v][i];
        terms[v][i] = factor * cuda::widen(fetched.values.values[i]);
      }
    }
    place.store(gradients, grad_x);
  }

  __device__ void finish(std::int64_t col, const double (&totals)[2]) const {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      grad_vectors[v][col] = cuda::narrow<T>(static_cast<float>(totals[v]));
    }
  }
};

}  // namespace

void CudaDenseOps::head_dots(ConstOperand x, ConstOperand first, ConstOperand second,
                             Operand of_first, Operand of_second, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const HeadDots<T> function{rows_of<T>(x),
                               {values_of<T>(first), values_of<T>(second)},
                               {rows_of<T>(of_first), rows_of<T>(of_second)}};
    auto extent = cuda::Extent{x.rows, x.cols}.with(function.x);
    for (const T* vector : function.vectors) extent = extent.with(columns_of(vector));
    cuda::for_rows<cuda::chunk<T>>(extent, of_first.cols, function, stream);
  });
}

void CudaDenseOps::head_dots_backward(const HeadDotsGradCall& call, Stream stream,
                                      const DenseWorkspace* workspace) const {
  const ConstOperand& x = call.x;
  if (x.cols == 0) return;
  const cuda_backend::CurrentDevice current(device_.index);
  const DenseWorkspaceUse use(workspace, "the gradient of head_dots", device_, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    constexpr int width = cuda::chunk<T>;
    const HeadDotsBackward<T> function{
        rows_of<T>(x),
        {values_of<T>(call.first), values_of<T>(call.second)},
        {rows_of<T>(call.grad_of_first), rows_of<T>(call.grad_of_second)},
        rows_of<T>(call.grad_x),
        {values_of<T>(call.grad_first), values_of<T>(call.grad_second)},
        x.cols / call.grad_of_first.cols};
    auto extent = cuda::Extent{x.rows, x.cols}.with(function.x).with(function.grad_x);
    for (const T* vector : function.vectors) extent = extent.with(columns_of(vector));
    extent.aligned = extent.aligned && function.head_width % width == 0;
    cuda::for_columns<width>(extent, function, parts, stream);
  });
}

}  // namespace tessera::ops
