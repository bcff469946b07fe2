// SPDX-License-Identifier: Apache-2.0
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/gemm/cuda/product_launch.hpp"
#include "ops/gemm/cuda/products.hpp"

/// The gradient of the weight of a layer with one or two columns that reads what a batch norm left
/// to do, and what the gradient of that batch norm begins with, in one pass over x. Where z = (x -
/// a) b + c counts, two sums are taken for each column of grad_y: of its numbers g, and of g (x -
/// a). Of these follow the gradient, whose terms are g z = b g (x - a) + c g, and the sums of the
/// gradient of z, whose terms are g times the weight.
namespace tessera::ops {
namespace {

template <int count>
struct ThinNormSums {
  cuda::Rows<const float> x, grad_y, weight;
  ReadColumns reading;  ///< of x
  cuda::Rows<float> grad_weight;
  cuda::Rows<double> sums;

  static constexpr int num_sums = 2 * count;
  /// Of two columns: six rows are added in fp32 before they are added to sums in double, of which
  /// four columns would have as many as fill a thread's registers. To make doubles of all terms
  /// takes longer than to read x.
  static constexpr int columns_at_once = 2;
  static constexpr int rows_ahead = 6;
  using Term = float;

  template <int width>
  using Columns = cuda::KeptNumbers<width>;
  template <int width>
  struct Fetched {
    float grad_y[count], x[width];
  };

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    return cuda::keep_numbers<width>(reading.numbers + place.col);
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Columns<width>&) const {
    Fetched<width> fetched;
#pragma unroll
    for (int k = 0; k < count; ++k) fetched.grad_y[k] = grad_y.data[place.row * grad_y.stride + k];
    place.load(x, fetched.x);
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>&, const Columns<width>& columns,
                      const Fetched<width>& fetched, float (&terms)[num_sums][width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const cuda::ColumnNumbers column = columns.of[i];
      const float distance = fetched.x[i] - column.a;
      const bool counts = !(reading.relu && distance * column.b + column.c <= 0);
#pragma unroll
      for (int k = 0; k < count; ++k) {
        // A not-a-number passes.
        terms[k][i] = counts ? fetched.grad_y[k] : fetched.grad_y[k] * 0.0f;
        terms[count + k][i] = counts ? fetched.grad_y[k] * distance : 0.0f;
      }
    }
  }

  __device__ void finish(std::int64_t col, const double (&totals)[num_sums]) const {
    const cuda::ColumnNumbers column = reading.numbers[col];
    double of_gradient = 0, of_distances = 0;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const auto factor = static_cast<double>(weight.data[k * weight.stride + col]);
      of_gradient += factor * totals[k];
      of_distances += factor * totals[count + k];
      grad_weight.data[k * grad_weight.stride + col] =
          static_cast<float>(static_cast<double>(column.b) * totals[count + k] +
                             static_cast<double>(column.c) * totals[k]);
    }
    sums.data[col] = of_gradient;
    sums.data[sums.stride + col] = of_distances;
  }
};

template <int count>
void run(const LinearGradCall& call, std::byte* memory, Stream stream) {
  const ThinNormSums<count> function{
      rows_of<float>(call.x),
      rows_of<float>(call.grad_y),
      rows_of<float>(call.weight),
      {static_cast<const cuda::ColumnNumbers*>(call.of_x.columns.data), call.of_x.relu},
      rows_of<float>(call.grad_weight),
      rows_of<double>(call.norm_sums)};
  const auto extent = cuda::Extent{call.x.rows, call.x.cols}.with(function.x);
  cuda::for_long_columns<ThinNormSums<count>::columns_at_once>(extent, function,
                                                               cuda::workspace_in(memory), stream);
}

}  // namespace

void run_thin_norm_sums(const LinearGradCall& call, std::byte* memory, Stream stream) {
  const auto chosen = call.grad_y.cols == 1 ? run<1> : run<2>;
  chosen(call, memory, stream);
}

}  // namespace tessera::ops
