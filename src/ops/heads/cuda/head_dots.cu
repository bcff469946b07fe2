// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"

namespace tessera::ops {
namespace {

/// One head of one row with each of `count` vectors.
template <class T, int count>
struct HeadDots {
  cuda::Rows<const T> x;
  const T* vectors[count];
  cuda::Rows<T> y[count];

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    double sums[count] = {};
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int v = 0; v < count; ++v) {
        float weights[width];
        place.load_columns(vectors[v], weights);
        float part = 0;
#pragma unroll
        for (int i = 0; i < width; ++i) part += values[i] * weights[i];
        sums[v] += static_cast<double>(part);
      }
    });
#pragma unroll
    for (int v = 0; v < count; ++v) sums[v] = team.sum(sums[v]);
    if (!has_row || team.lane != 0) return;
    const std::int64_t head = team.begin / (team.end - team.begin);
#pragma unroll
    for (int v = 0; v < count; ++v) {
      y[v].data[team.row * y[v].stride + head] = cuda::narrow<T>(static_cast<float>(sums[v]));
    }
  }
};

/// Chunks stay within a head.
template <class T, int count>
struct HeadDotsBackward {
  cuda::Rows<const T> x;
  const T* vectors[count];
  cuda::Rows<const T> grad_y[count];
  cuda::Rows<T> grad_x;  ///< may be absent for one vector
  T* grad_vectors[count];
  std::int64_t head_width;

  static constexpr int num_sums = count;
  static constexpr int rows_ahead = 2;
  using Term = float;

  template <int width>
  struct Columns {
    std::int64_t head;
    float weights[count][width];
  };
  /// As it lies: to widen it would be to wait for each row before the next is asked for.
  template <int width>
  struct Fetched {
    cuda::Pack<T, width> values, gradients;
    T factors[count];
  };

  /// Where no vector needs a gradient.
  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float terms[count][width];
    const auto of_columns = columns(place);
    row(place, of_columns, fetch(place, of_columns), terms);
  }

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    Columns<width> columns;
    columns.head = place.col / head_width;
#pragma unroll
    for (int v = 0; v < count; ++v) place.load_columns(vectors[v], columns.weights[v]);
    return columns;
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Columns<width>& columns) const {
    Fetched<width> fetched{};
    fetched.values = cuda::fetch_pack(place, x);
    if (has_grad_x()) {
      fetched.gradients = cuda::fetch_pack(place, cuda::Rows<const T>{grad_x.data, grad_x.stride});
    }
#pragma unroll
    for (int v = 0; v < count; ++v) {
      fetched.factors[v] = grad_y[v].data[place.row * grad_y[v].stride + columns.head];
    }
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Columns<width>& columns,
                      const Fetched<width>& fetched, float (&terms)[count][width]) const {
    float gradients[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      gradients[i] = cuda::widen(fetched.gradients.values[i]);
#pragma unroll
      for (int v = 0; v < count; ++v) {
        const float factor = cuda::widen(fetched.factors[v]);
        gradients[i] += factor * columns.weights[v][i];
        terms[v][i] = factor * cuda::widen(fetched.values.values[i]);
      }
    }
    if (has_grad_x()) place.store(gradients, grad_x);
  }

  __device__ void finish(std::int64_t col, const double (&totals)[count]) const {
#pragma unroll
    for (int v = 0; v < count; ++v) {
      grad_vectors[v][col] = cuda::narrow<T>(static_cast<float>(totals[v]));
    }
  }

 private:
  __device__ bool has_grad_x() const { return count > 1 || grad_x.data != nullptr; }
};

template <class T, int count>
void run_dots(const HeadDotsCall& call, Stream stream) {
  HeadDots<T, count> function{rows_of<T>(call.x), {}, {}};
  auto extent = cuda::Extent{call.x.rows, call.x.cols}.with(function.x);
  for (int v = 0; v < count; ++v) {
    function.vectors[v] = values_of<T>(call.vectors[v]);
    function.y[v] = rows_of<T>(call.y[v]);
    extent = extent.with(columns_of(function.vectors[v]));
  }
  cuda::for_rows<cuda::chunk<T>>(extent, call.y[0].cols, function, stream);
}

template <class T, int count>
void run_gradients(const HeadDotsGradCall& call, const CudaDenseRun& on) {
  constexpr int width = cuda::chunk<T>;
  const std::int64_t head_width = call.x.cols / call.grad_y[0].cols;
  HeadDotsBackward<T, count> function{rows_of<T>(call.x),      {}, {},
                                      rows_of<T>(call.grad_x), {}, head_width};
  auto extent = cuda::Extent{call.x.rows, call.x.cols}.with(function.x).with(function.grad_x);
  for (int v = 0; v < count; ++v) {
    function.vectors[v] = values_of<T>(call.vectors[v]);
    function.grad_y[v] = rows_of<T>(call.grad_y[v]);
    function.grad_vectors[v] = values_of<T>(call.grad_vectors[v]);
    extent = extent.with(columns_of(function.vectors[v]));
  }
  extent.aligned = extent.aligned && head_width % width == 0;
  if (count > 1 || !call.grad_vectors[0].absent()) {
    const char* const op = count == 1 ? "the gradient of head_dot" : "the gradient of head_dots";
    const DenseWorkspaceUse use(on.workspace, op, on.device, on.stream);
    cuda::for_columns<width>(extent, function, cuda::workspace_in(use.data()), on.stream);
  } else if (!call.grad_x.absent()) {
    if constexpr (count == 1) cuda::for_elements<width, 1>(extent, function, on.stream);
  }
}

}  // namespace

void CudaDenseRun::run(const HeadDotsCall& call) const {
  cuda::visit_type(call.x.type, [&]<class T>(T) {
    const auto chosen = call.count == 1 ? run_dots<T, 1> : run_dots<T, 2>;
    chosen(call, stream);
  });
}

void CudaDenseRun::run(const HeadDotsGradCall& call) const {
  if (call.x.cols == 0) return;
  cuda::visit_type(call.x.type, [&]<class T>(T) {
    const auto chosen = call.count == 1 ? run_gradients<T, 1> : run_gradients<T, 2>;
    chosen(call, *this);
  });
}

}  // namespace tessera::ops
