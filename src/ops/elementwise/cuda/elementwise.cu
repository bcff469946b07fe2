// SPDX-License-Identifier: Apache-2.0
#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"

namespace tessera::ops {
namespace {

template <class T>
struct Fill {
  cuda::Rows<T> y;
  float value;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float values[width];
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = value;
    place.store(values, y);
  }
};

template <class T>
struct AddScaled {
  cuda::Rows<const T> x;
  cuda::Rows<T> y;
  const T* learned;  ///< null: none
  float offset, beta;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    const float alpha = learned == nullptr ? offset : offset + cuda::widen(*learned);
    float values[width];
    place.load(x, values);
    if (beta == 0) {
#pragma unroll
      for (int i = 0; i < width; ++i) values[i] *= alpha;
    } else {
      float before[width];
      place.load(cuda::Rows<const T>{y.data, y.stride}, before);
#pragma unroll
      for (int i = 0; i < width; ++i) values[i] = alpha * values[i] + beta * before[i];
    }
    place.store(values, y);
  }
};

constexpr int tile = 32;
constexpr int tile_rows = 8;

/// Through shared memory, so that both matrices are read and written along their rows. One column
/// more than needed keeps its columns in different banks.
template <class Word>
__global__ void transpose_tiles(cuda::Rows<const Word> x, std::int64_t rows, std::int64_t cols,
                                cuda::Rows<Word> y) {
  cuda::begin_overlapped();
  __shared__ Word shared[tile][tile + 1];
  const std::int64_t left = std::int64_t{blockIdx.y} * tile;
  const std::int64_t top = std::int64_t{blockIdx.x} * tile;
  const int across = static_cast<int>(threadIdx.x) % tile;
  const int down = static_cast<int>(threadIdx.x) / tile;
  for (int i = down; i < tile; i += tile_rows) {
    const std::int64_t row = top + i;
    const std::int64_t col = left + across;
    if (row < rows && col < cols) shared[i][across] = x.data[row * x.stride + col];
  }
  __syncthreads();
  for (int i = down; i < tile; i += tile_rows) {
    const std::int64_t row = top + across;
    const std::int64_t col = left + i;
    if (row < rows && col < cols) y.data[col * y.stride + row] = shared[across][i];
  }
}

/// A transposition moves bits: only their number matters.
template <class Word>
void transpose_words(const ConstOperand& x, const Operand& y, Stream stream) {
  constexpr std::int64_t most_across = 65535;
  // The grid is small in its second direction: wide matrices go in strips.
  for (std::int64_t left = 0; left < x.cols; left += most_across * tile) {
    const std::int64_t cols = std::min(x.cols - left, most_across * tile);
    const dim3 grid(cuda::num_blocks(x.rows, tile), cuda::num_blocks(cols, tile));
    cuda::launch_overlapped(
        transpose_tiles<Word>, grid, tile * tile_rows, stream,
        cuda::Rows<const Word>{static_cast<const Word*>(x.data) + left, x.stride}, x.rows, cols,
        cuda::Rows<Word>{static_cast<Word*>(y.data) + left * y.stride, y.stride});
  }
}

}  // namespace

void CudaDenseRun::run(const FillCall& call) const {
  const auto& [y, value] = call;
  cuda::visit_type(y.type, [&]<class T>(T) {
    const Fill<T> function{rows_of<T>(y), static_cast<float>(value)};
    const auto extent = cuda::Extent{y.rows, y.cols}.with(function.y).flattened();
    cuda::for_elements<cuda::chunk<T>>(extent, function, stream);
  });
}

void CudaDenseRun::run(const TransposeCall& call) const {
  const auto chosen = call.x.type == ElementType::fp32 ? transpose_words<std::uint32_t>
                                                       : transpose_words<std::uint16_t>;
  chosen(call.x, call.y, stream);
}

void CudaDenseRun::run(const AddScaledCall& call) const {
  const ConstOperand& x = call.x;
  cuda::visit_type(x.type, [&]<class T>(T) {
    const AddScaled<T> function{rows_of<T>(x), rows_of<T>(call.y), values_of<T>(call.learned),
                                static_cast<float>(call.offset), static_cast<float>(call.beta)};
    const auto extent = cuda::Extent{x.rows, x.cols}.with(function.x).with(function.y).flattened();
    cuda::for_elements<cuda::chunk<T>>(extent, function, stream);
  });
}

}  // namespace tessera::ops
