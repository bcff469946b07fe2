// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "ops/batch_norm/cuda/backward.cuh"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/cuda/gradient_source.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"

namespace tessera::ops {
namespace {

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

}  // namespace

void CudaDenseRun::run(const BatchNormGradCall& call) const {
  const ConstOperand& x = call.x;
  if (x.cols == 0) return;
  require_columns(x.cols);
  const DenseWorkspaceUse use(workspace, "batch_norm", device, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  cuda::visit_type(x.type, [&]<class T>(T) {
    constexpr int width = cuda::columns_at_once;
    const auto run = [&](const auto& grad_y, const auto& formula) {
      using Gradient = std::decay_t<decltype(grad_y)>;
      using Formula = std::decay_t<decltype(formula)>;
      const Normalised<T, Gradient, Formula> normalised{
          rows_of<T>(x),
          grad_y,
          values_of<float>(call.saved_mean),
          values_of<float>(call.saved_inverse_deviation),
          values_of<float>(call.gamma),
          values_of<float>(call.beta),
          formula};
      const auto extent = grad_y.extend(cuda::Extent{x.rows, x.cols}.with(normalised.x));
      const NormGradientSums<T, Gradient, Formula> sums{
          normalised,
          values_of<float>(call.grad_gamma),
          values_of<float>(call.grad_beta),
          values_of<T>(call.grad_shift),
          x.rows,
          parts.columns,
          static_cast<GradientColumn*>(call.grad_columns.data)};
      const bool knows_sums = !call.sums.absent();
      if (knows_sums) {
        cuda::launch_overlapped(columns_of_sums<NormGradientSums<T, Gradient, Formula>>,
                                dim3(cuda::num_blocks(x.cols, 256)), 256, stream, x.cols,
                                rows_of<double>(call.sums), sums);
      }
      if (call.grad_x.absent()) {
        if (!knows_sums) cuda::for_long_columns<width>(extent, sums, parts, stream);
        return;
      }
      const GradientOfInput<T, Gradient, Formula> gradient{normalised, rows_of<T>(call.grad_x),
                                                           parts.columns};
      const auto with_result = cuda::Extent(extent).with(gradient.grad_x);
      if (knows_sums) {
        cuda::for_long_columns<width>(with_result, gradient, parts, stream);
      } else if constexpr (std::is_same_v<Gradient, ProductGradient<T>> ||
                           std::is_same_v<Formula, ShortFormula>) {
        cuda::for_long_columns<width>(with_result, sums, parts, stream);
        cuda::for_long_columns<width>(with_result, gradient, parts, stream);
      } else {
        cuda::for_columns_twice<width>(with_result, sums, gradient, parts, stream);
      }
    };
    const auto run_with = [&](const auto& formula) {
      if (call.factors.absent()) {
        run(MatrixGradient<T>{rows_of<T>(call.grad_y)}, formula);
      } else {
        run(ProductGradient<T>(call.factors), formula);
      }
    };
    if (ShortFormula::suits(call.formula) && !cuda::fits_clusters(x.rows)) {
      run_with(ShortFormula{call.formula.activation});
    } else {
      run_with(DeviceFormula(call.formula));
    }
  });
}

}  // namespace tessera::ops
