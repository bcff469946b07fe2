// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/plan/trial_operands.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What the registry needs of spmm: operands of a problem's shapes to time kernels with, words for
/// the problem, and the kinds of runs that a plan admits.
class SpmmTrial : public TrialOperands {
 public:
  SpmmTrial(const SpmmProblem& problem, const Place& place);

  void run(const PreparedSpmm& prepared, Stream stream) const {
    prepared.run(call_, stream, workspace());
  }

  static std::string op(const SpmmProblem& problem);
  static std::string details(const SpmmProblem& problem);

  /// Runs with edge values or without, on 16-byte boundaries or not: all that the problem admits
  /// and is not itself.
  static std::vector<OtherRuns<SpmmProblem>> other_runs(const SpmmProblem& problem);
  /// Sends runs of `kinds` to the second.
  static std::unique_ptr<const PreparedSpmm> with_fallback(
      std::unique_ptr<const PreparedSpmm> chosen, std::uint32_t kinds,
      std::unique_ptr<const PreparedSpmm> fallback);

 private:
  SpmmCall call_;
};

}  // namespace tessera::ops
