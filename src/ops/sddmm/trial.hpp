// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/cuda/boundaries.hpp"
#include "ops/plan/trial_operands.hpp"
#include "ops/plan/tune.hpp"
#include "ops/sddmm/kernel.hpp"

namespace tessera::ops {

/// Whether every row of features begins on a 16-byte boundary, and edges lie near each other.
inline bool is_aligned(const ConstOperand& u, const ConstOperand& v, const Operand& edges) {
  return on_boundaries(u, 0) && within_reach(u) && on_boundaries(v, 0) && within_reach(v) &&
         edges.stride <= max_dot_stride;
}

/// Sends operands that are not aligned to the second.
class SddmmWithFallback final : public PreparedSddmm {
 public:
  SddmmWithFallback(std::unique_ptr<const PreparedSddmm> chosen,
                    std::unique_ptr<const PreparedSddmm> fallback)
      : chosen_(std::move(chosen)), fallback_(std::move(fallback)) {}

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    (is_aligned(u, v, edges) ? *chosen_ : *fallback_).run(u, v, edges, stream);
  }

 private:
  std::unique_ptr<const PreparedSddmm> chosen_;
  std::unique_ptr<const PreparedSddmm> fallback_;
};

/// What the registry needs of sddmm: see spmm/trial.hpp.
class SddmmTrial : public TrialOperands {
 public:
  SddmmTrial(const SddmmProblem& problem, const Place& place)
      : TrialOperands(place),
        u_(matrix(problem.precision, problem.graph.num_rows(), problem.features)),
        v_(matrix(problem.precision, problem.graph.num_cols(), problem.features)),
        edges_(matrix(problem.precision, problem.graph.num_edges(), problem.heads)) {}

  void run(const PreparedSddmm& prepared, Stream stream) { prepared.run(u_, v_, edges_, stream); }

  static std::string op(const SddmmProblem&) { return "sddmm"; }
  static std::string details(const SddmmProblem& problem) {
    std::string text = fmt::format("features {}, heads {}, {}, {}", problem.features, problem.heads,
                                   to_string(problem.precision), to_string(problem.function));
    if (problem.factor != EdgeFactor::none) text += ", times " + weights_text(problem.graph);
    if (problem.factor == EdgeFactor::mean_scales) text += ", over degrees";
    if (!problem.aligned) text += ", off boundaries";
    return text;
  }

  static std::vector<OtherRuns<SddmmProblem>> other_runs(const SddmmProblem& problem) {
    if (!problem.aligned) return {};
    SddmmProblem other = problem;
    other.aligned = false;
    return {{0, "rows off 16-byte boundaries", std::move(other)}};
  }
  static std::unique_ptr<const PreparedSddmm> with_fallback(
      std::unique_ptr<const PreparedSddmm> chosen, std::uint32_t,
      std::unique_ptr<const PreparedSddmm> fallback) {
    return std::make_unique<SddmmWithFallback>(std::move(chosen), std::move(fallback));
  }

 private:
  Operand u_, v_, edges_;
};

}  // namespace tessera::ops
