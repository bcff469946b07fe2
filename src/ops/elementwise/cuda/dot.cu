// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"

namespace tessera::ops {
namespace {

template <class T, bool aligned>
__global__ __launch_bounds__(cuda::sum_threads) void add_products(std::int64_t size,
                                                                  std::int64_t cols,
                                                                  cuda::Rows<const T> x,
                                                                  cuda::Rows<const T> y, T* result,
                                                                  const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  constexpr int width = cuda::chunk<T>;
  cuda::Elements<width, aligned> place;
  place.cols = cols;
  double sum[1] = {};
  const std::int64_t step = std::int64_t{gridDim.x} * cuda::sum_threads * width;
  for (std::int64_t first =
           (std::int64_t{blockIdx.x} * cuda::sum_threads + threadIdx.x) * std::int64_t{width};
       first < size; first += step) {
    place.row = first / cols;
    place.col = first - place.row * cols;
    place.count = static_cast<int>(size - first < width ? size - first : width);
    float a[width], b[width];
    place.load(x, a);
    place.load(y, b);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i < place.count) sum[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
  }
  cuda::add_across_grid(sum, workspace, [&](const double(&total)[1]) {
    *result = cuda::narrow<T>(static_cast<float>(total[0]));
  });
}

}  // namespace

void CudaDenseRun::run(const DotCall& call) const {
  const auto& [x, y, result] = call;
  const DenseWorkspaceUse use(workspace, "dot", device, stream);
  cuda::visit_type(x.type, [&]<class T>(T) {
    const auto extent =
        cuda::Extent{x.rows, x.cols}.with(rows_of<T>(x)).with(rows_of<T>(y)).flattened();
    constexpr int width = cuda::chunk<T>;
    const auto kernel = extent.in_chunks(width) ? add_products<T, true> : add_products<T, false>;
    cuda::launch_overlapped(
        kernel, cuda::sum_grid(extent.size(), std::int64_t{cuda::sum_threads} * width * 4),
        cuda::sum_threads, stream, extent.size(), extent.cols, rows_of<T>(x), rows_of<T>(y),
        values_of<T>(result), cuda::workspace_in(use.data()));
  });
}

}  // namespace tessera::ops
