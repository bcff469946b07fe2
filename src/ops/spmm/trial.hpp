// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/scratch_operand.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What a measuring plan needs of spmm: operands of a problem's shapes, and words for the problem.
class SpmmTrial {
 public:
  SpmmTrial(const SpmmProblem& problem, const Place& place);

  void prepare(const PreparedSpmm& prepared) { workspace_.prepare(prepared.workspace()); }
  void run(const PreparedSpmm& prepared, Stream stream) const {
    prepared.run(call_, stream, workspace_.view());
  }

  static std::string op(const SpmmProblem& problem);
  static std::string details(const SpmmProblem& problem);

 private:
  ScratchOperand x_;
  ScratchOperand y_;
  ScratchOperand edge_values_;
  ScratchOperand bias_;
  ScratchOperand residual_;
  Buffer<VertexId> winners_;
  SpmmCall call_;
  TrialWorkspace workspace_;
};

}  // namespace tessera::ops
