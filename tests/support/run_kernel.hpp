// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/kernel.hpp"

namespace tessera::test {

/// Runs one kernel of spmm without a plan, as a plan would: with a workspace, and when everything
/// that it was prepared with has arrived.
inline void run_kernel(const ops::SpmmKernel& kernel, const ops::SpmmProblem& problem,
                       const ops::SpmmCall& call) {
  const auto prepared = kernel.prepare(problem);
  ops::TrialWorkspace workspace(problem.place());
  workspace.prepare(prepared->workspace());
  synchronise(problem.device, problem.stream);
  prepared->run(call, problem.stream, workspace.view());
}

}  // namespace tessera::test
