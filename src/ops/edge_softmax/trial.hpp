// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/edge_softmax/kernel.hpp"
#include "ops/scratch_operand.hpp"

namespace tessera::ops {

/// What a measuring plan needs of edge_softmax: see spmm/trial.hpp. Both passes count, since
/// one plan runs them.
class EdgeSoftmaxTrial {
 public:
  EdgeSoftmaxTrial(const EdgeSoftmaxProblem& problem, const Place& place)
      : scores_(of_edges(problem, place)),
        weights_(of_edges(problem, place)),
        gradient_(of_edges(problem, place)),
        workspace_(place) {}

  void prepare(const PreparedEdgeSoftmax& prepared) { workspace_.prepare(prepared.workspace()); }
  void run(const PreparedEdgeSoftmax& prepared, Stream stream) {
    prepared.run(scores_, weights_, stream, workspace_.view());
    prepared.run_backward(weights_, scores_, gradient_, stream, workspace_.view());
  }

  static std::string op(const EdgeSoftmaxProblem&) { return "edge_softmax"; }
  static std::string details(const EdgeSoftmaxProblem& problem) {
    return fmt::format("heads {}, {}", problem.options.heads, to_string(problem.options.precision));
  }

 private:
  static ScratchOperand of_edges(const EdgeSoftmaxProblem& problem, const Place& place) {
    return {problem.options.precision, problem.graph.num_edges(), problem.options.heads, place};
  }

  ScratchOperand scores_, weights_, gradient_;
  TrialWorkspace workspace_;
};

}  // namespace tessera::ops
