// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/edge_difference/kernel.hpp"
#include "ops/scratch_operand.hpp"

namespace tessera::ops {

/// What a measuring plan needs of edge_difference.
class EdgeDifferenceTrial {
 public:
  EdgeDifferenceTrial(const EdgeDifferenceProblem& problem, const Place& place)
      : x_(problem.options.precision, problem.graph.num_rows(), problem.options.features, place),
        differences_(problem.options.precision, problem.graph.num_edges(), problem.options.features,
                     place),
        workspace_(place) {}

  void prepare(const PreparedEdgeDifference& prepared) { workspace_.prepare(prepared.workspace()); }
  void run(const PreparedEdgeDifference& prepared, Stream stream) {
    prepared.run(x_, differences_, stream, workspace_.view());
    prepared.run_backward(differences_, x_, stream, workspace_.view());
  }

  static std::string op(const EdgeDifferenceProblem&) { return "edge_difference"; }
  static std::string details(const EdgeDifferenceProblem& problem) {
    return fmt::format("features {}, {}", problem.options.features,
                       to_string(problem.options.precision));
  }

 private:
  ScratchOperand x_, differences_;
  TrialWorkspace workspace_;
};

}  // namespace tessera::ops
