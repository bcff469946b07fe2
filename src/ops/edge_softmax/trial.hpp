// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/edge_softmax/kernel.hpp"
#include "ops/plan/trial_operands.hpp"

namespace tessera::ops {

/// What a measuring plan needs of edge_softmax: see spmm/trial.hpp. Both passes count, since
/// one plan runs them.
class EdgeSoftmaxTrial : public TrialOperands {
 public:
  EdgeSoftmaxTrial(const EdgeSoftmaxProblem& problem, const Place& place)
      : TrialOperands(place),
        scores_(of_edges(problem)),
        weights_(of_edges(problem)),
        gradient_(of_edges(problem)) {}

  void run(const PreparedEdgeSoftmax& prepared, Stream stream) {
    prepared.run(scores_, weights_, stream, workspace());
    prepared.run_backward(weights_, scores_, gradient_, stream, workspace());
  }

  static std::string op(const EdgeSoftmaxProblem&) { return "edge_softmax"; }
  static std::string details(const EdgeSoftmaxProblem& problem) {
    return fmt::format("heads {}, {}", problem.options.heads, to_string(problem.options.precision));
  }

 private:
  Operand of_edges(const EdgeSoftmaxProblem& problem) {
    return matrix(problem.options.precision, problem.graph.num_edges(), problem.options.heads);
  }

  Operand scores_, weights_, gradient_;
};

}  // namespace tessera::ops
