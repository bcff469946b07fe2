// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/winner_gradients.hpp"

#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/winner_gradients.hpp"

namespace tessera::ops {
namespace {

SpmmProblem forward_of(SpmmProblem problem) {
  problem.pass = SpmmPass::forward;
  return problem;
}

class CudaWinnerGradients final : public EdgeValueGradients {
 public:
  explicit CudaWinnerGradients(const SpmmProblem& problem)
      : precision_(problem.precision), matrix_(forward_of(problem)) {}

  void run(const SpmmGradInputs& inputs, const Operand& grad_edge_values,
           Stream stream) const override {
    const RowsLaunch rows = matrix_.launch({});
    WinnerGradientsLaunch launch;
    launch.offsets = rows.matrix.offsets;
    launch.indices = rows.matrix.indices;
    launch.num_rows = rows.matrix.num_rows;
    launch.num_edges = matrix_.rows().num_edges;
    launch.row_scale = rows.epilogue.row_scale;
    launch.col_scale = rows.matrix.col_scale;
    launch.features = rows.features.count;
    launch.grad_y = inputs.grad_y.data;
    launch.grad_y_stride = inputs.grad_y.stride;
    launch.x = inputs.x.data;
    launch.x_stride = inputs.x.stride;
    launch.winners = inputs.winners.data;
    launch.winners_stride = inputs.winners.stride;
    launch.result = grad_edge_values.data;
    launch.result_stride = grad_edge_values.stride;
    launch_winner_gradients(launch, precision_, stream);
  }

 private:
  Precision precision_;
  DeviceMatrix matrix_;
};

}  // namespace

std::unique_ptr<const EdgeValueGradients> cuda_winner_gradients(const SpmmProblem& problem) {
  return std::make_unique<CudaWinnerGradients>(problem);
}

}  // namespace tessera::ops
