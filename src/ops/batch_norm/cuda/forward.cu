// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/batch_norm/cuda/forward.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"

namespace tessera::ops {
namespace {

/// Where the moments are known.
template <class T>
__global__ void columns_of_moments(std::int64_t cols, cuda::Rows<const double> moments,
                                   const BatchMoments<T> function) {
  cuda::begin_overlapped();
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  auto known = function.statistics.column(col);
  known.shift = moments.data[col];
  const double totals[2] = {moments.data[moments.stride + col],
                            moments.data[2 * moments.stride + col]};
  function.finish(col, known, totals);
  function.statistics.columns[col] = function.numbers(known, totals);
}

template <class T>
__global__ void running_columns(std::int64_t cols, const Statistics<T> statistics) {
  cuda::begin_overlapped();
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  statistics.columns[col] = statistics.running_numbers(col);
}

}  // namespace

void CudaDenseRun::run(const BatchNormCall& call) const {
  const ConstOperand& x = call.x;
  if (x.cols == 0) return;
  require_columns(x.cols);
  const DenseWorkspaceUse use(workspace, "batch_norm", device, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  auto* const columns =
      call.columns.absent() ? parts.columns : static_cast<cuda::ColumnNumbers*>(call.columns.data);
  cuda::visit_type(x.type, [&]<class T>(T) {
    constexpr int width = cuda::columns_at_once;
    const Statistics<T> statistics = statistics_of<T>(call, columns);
    const auto from = rows_of<T>(x);
    const Normalise<T> normalise{from, rows_of<T>(call.y), columns, DeviceFormula(call.formula)};
    const auto extent = cuda::Extent{x.rows, x.cols}.with(from).with(normalise.y);
    const BatchMoments<T> moments{from, statistics};
    const dim3 column_blocks(cuda::num_blocks(x.cols, 256));
    if (!call.options.training) {
      cuda::launch_overlapped(running_columns<T>, column_blocks, 256, stream, x.cols, statistics);
    } else if (!call.moments.absent()) {
      cuda::launch_overlapped(columns_of_moments<T>, column_blocks, 256, stream, x.cols,
                              rows_of<double>(call.moments), moments);
    } else if (call.columns.absent()) {
      return cuda::for_columns_twice<width>(extent, moments, normalise, parts, stream);
    } else {
      cuda::for_long_columns<width>(extent, moments, parts, stream);
    }
    if (!call.y.absent()) cuda::for_long_columns<width>(extent, normalise, parts, stream);
  });
}

}  // namespace tessera::ops
