// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/aggregate_update/kernel.hpp"
#include "ops/scratch_operand.hpp"
#include "ops/tune.hpp"

namespace tessera::ops {

/// What a measuring plan needs of aggregate_update: see spmm/trial.hpp.
class AggregateUpdateTrial {
 public:
  AggregateUpdateTrial(const AggregateUpdateProblem& problem, const Place& place)
      : products_(place), workspace_(place) {
    const AggregateUpdateOptions& options = problem.options;
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
      return ScratchOperand(options.precision, rows, cols, place);
    };
    x_ = matrix(problem.num_sources(), problem.gathered());
    y_ = matrix(problem.num_targets(), problem.written());
    weight_ = matrix(options.out, options.in);
    call_.x = x_;
    call_.y = y_;
    call_.weight = weight_;
    call_.products = &products_;
    if (options.root) call_.root_weight = root_weight_ = matrix(options.out, options.in);
    if (options.self_scale) call_.self_scale = self_scale_ = matrix(1, 1);
    if (!problem.is_forward()) return;
    if (options.bias) call_.bias = bias_ = matrix(1, options.out);
    if (options.keep_aggregated) {
      call_.aggregated = aggregated_ = matrix(problem.num_targets(), options.in);
    }
    const Dropout dropout{options.dropout};
    call_.formula = {options.activation, options.slope, options.alpha, dropout.active(),
                     dropout.constants()};
  }

  void prepare(const PreparedAggregateUpdate& prepared) {
    workspace_.prepare(prepared.workspace());
  }
  void run(const PreparedAggregateUpdate& prepared, Stream stream) const {
    prepared.run(call_, stream, workspace_.view());
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
  ScratchOperand x_, y_, weight_, root_weight_, self_scale_, bias_, aggregated_;
  AggregateUpdateCall call_;
  TrialWorkspace workspace_;
};

}  // namespace tessera::ops
