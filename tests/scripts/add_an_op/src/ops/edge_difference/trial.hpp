// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/edge_difference/kernel.hpp"
#include "ops/plan/trial_operands.hpp"

namespace tessera::ops {

/// What a measuring plan needs of edge_difference.
class EdgeDifferenceTrial : public TrialOperands {
 public:
  EdgeDifferenceTrial(const EdgeDifferenceProblem& problem, const Place& place)
      : TrialOperands(place),
        x_(rows_of_features(problem, problem.graph.num_rows())),
        differences_(rows_of_features(problem, problem.graph.num_edges())) {}

  void run(const PreparedEdgeDifference& prepared, Stream stream) {
    prepared.run(x_, differences_, stream, workspace());
    prepared.run_backward(differences_, x_, stream, workspace());
  }

  static std::string op(const EdgeDifferenceProblem&) { return "edge_difference"; }
  static std::string details(const EdgeDifferenceProblem& problem) {
    return fmt::format("features {}, {}", problem.options.features,
                       to_string(problem.options.precision));
  }

 private:
  Operand rows_of_features(const EdgeDifferenceProblem& problem, std::int64_t rows) {
    return matrix(problem.options.precision, rows, problem.options.features);
  }

  Operand x_, differences_;
};

}  // namespace tessera::ops
