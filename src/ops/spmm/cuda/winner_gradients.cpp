// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/winner_gradients.hpp"

#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/edge_terms.hpp"

namespace tessera::ops {

EdgeValueGradients cuda_winner_gradients(const SpmmProblem& problem) {
  SpmmProblem forward = problem;
  forward.pass = SpmmPass::forward;
  const auto matrix = std::make_shared<const DeviceMatrix>(forward);
  return [matrix, precision = problem.precision](const SpmmGradInputs& inputs,
                                                 const Operand& gradients, Stream stream) {
    SpmmCall call;
    call.x = inputs.x;
    WinnerGradientsLaunch launch;
    launch.rows = matrix->launch(call);
    launch.num_edges = matrix->rows().num_edges;
    launch.grad_y = inputs.grad_y.data;
    launch.grad_y_stride = inputs.grad_y.stride;
    launch.winners = inputs.winners.data;
    launch.winners_stride = inputs.winners.stride;
    launch.result = gradients.data;
    launch.result_stride = gradients.stride;
    launch_winner_gradients(launch, precision, stream);
  };
}

}  // namespace tessera::ops
