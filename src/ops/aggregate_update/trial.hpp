// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/aggregate_update/kernel.hpp"
#include "ops/plan/trial_operands.hpp"
#include "ops/plan/tune.hpp"

namespace tessera::ops {

/// What a measuring plan needs of aggregate_update: see spmm/trial.hpp.
class AggregateUpdateTrial : public TrialOperands {
 public:
  AggregateUpdateTrial(const AggregateUpdateProblem& problem, const Place& place)
      : TrialOperands(place), products_(place) {
    const AggregateUpdateOptions& options = problem.options;
    const auto given = [&](std::int64_t rows, std::int64_t cols) {
      return matrix(options.precision, rows, cols);
    };
    call_.x = given(problem.num_sources(), problem.gathered());
    call_.y = given(problem.num_targets(), problem.written());
    call_.weight = given(options.out, options.in);
    call_.products = &products_;
    if (options.root) call_.root_weight = given(options.out, options.in);
    if (options.self_scale) call_.self_scale = given(1, 1);
    if (!problem.is_forward()) return;
    if (options.bias) call_.bias = given(1, options.out);
    if (options.keep_aggregated) call_.aggregated = given(problem.num_targets(), options.in);
    call_.formula = formula_of(options);
  }

  void run(const PreparedAggregateUpdate& prepared, Stream stream) const {
    prepared.run(call_, stream, workspace());
  }

  static std::string op(const AggregateUpdateProblem& problem) {
    return problem.is_forward() ? "aggregate_update" : "aggregate_update_backward";
  }
  static std::string details(const AggregateUpdateProblem& problem) {
    const AggregateUpdateOptions& options = problem.options;
    std::string text = fmt::format("{} to {} features, {}, {}, {}", options.in, options.out,
                                   to_string(options.precision), to_string(options.reduction),
                                   weights_text(problem.graph));
    if (options.self) text += ", own features";
    if (options.root) text += ", root weight";
    if (!problem.is_forward()) return text;
    if (options.bias) text += ", bias";
    if (options.activation != Activation::none) {
      text += fmt::format(", {}", to_string(options.activation));
    }
    if (options.dropout > 0) text += ", dropout";
    if (options.keep_aggregated) text += ", sums kept";
    return text;
  }

 private:
  DenseWorkspace products_;
  AggregateUpdateCall call_;
};

}  // namespace tessera::ops
