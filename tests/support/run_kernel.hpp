// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ops/spmm/kernel.hpp"

namespace tessera::test {

/// Runs one kernel of spmm without a plan, as a plan would: with a workspace, and when everything
/// that it was prepared with has arrived. Where `spoil_y` is given it runs again after that: what a
/// run leaves in the workspace, such as counters, must serve the next one.
inline void run_kernel(const ops::SpmmKernel& kernel, const ops::SpmmProblem& problem,
                       const ops::SpmmCall& call, const std::function<void()>& spoil_y = {}) {
  const auto prepared = kernel.prepare(problem);
  ops::TrialWorkspace workspace(problem.place());
  workspace.prepare(prepared->workspace());
  synchronise(problem.device, problem.stream);
  prepared->run(call, problem.stream, workspace.view());
  if (!spoil_y) return;
  synchronise(problem.device, problem.stream);
  spoil_y();
  prepared->run(call, problem.stream, workspace.view());
}

}  // namespace tessera::test
