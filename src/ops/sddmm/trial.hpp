// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/scratch_operand.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/tune.hpp"

namespace tessera::ops {

/// What a measuring plan needs of sddmm: see spmm/trial.hpp.
class SddmmTrial {
 public:
  SddmmTrial(const SddmmProblem& problem, const Place& place)
      : u_(problem.precision, problem.graph.num_rows(), problem.features, place),
        v_(problem.precision, problem.graph.num_cols(), problem.features, place),
        edges_(problem.precision, problem.graph.num_edges(), problem.heads, place) {}

  void run(const PreparedSddmm& prepared, Stream stream) { prepared.run(u_, v_, edges_, stream); }

  static std::string op(const SddmmProblem&) { return "sddmm"; }
  static std::string details(const SddmmProblem& problem) {
    std::string text = fmt::format("features {}, heads {}, {}, {}", problem.features, problem.heads,
                                   to_string(problem.precision), to_string(problem.function));
    if (problem.factor != EdgeFactor::none) text += ", times " + weights_text(problem.graph);
    if (problem.factor == EdgeFactor::mean_scales) text += ", over degrees";
    return text;
  }

 private:
  ScratchOperand u_, v_, edges_;
};

}  // namespace tessera::ops
