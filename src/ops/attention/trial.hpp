// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/attention/kernel.hpp"
#include "ops/scratch_operand.hpp"

namespace tessera::ops {

/// What a measuring plan needs of attention: see spmm/trial.hpp. The backward pass counts where
/// there is one.
class AttentionTrial {
 public:
  AttentionTrial(const AttentionProblem& problem, const Place& place)
      : place_(place), workspace_(place) {
    const AttentionOptions& options = problem.options;
    const std::int64_t rows = problem.graph.num_rows(), cols = problem.graph.num_cols();
    const bool per_head = options.form == AttentionForm::gat;
    const std::int64_t score_cols = per_head ? options.heads : options.features;
    const bool wide = options.precision == Precision::fp64;
    target_ = ScratchOperand(options.precision, rows, score_cols, place);
    source_ = ScratchOperand(options.precision, cols, score_cols, place);
    value_ = ScratchOperand(options.precision, cols, options.features, place);
    vector_ = ScratchOperand(options.precision, 1, options.features, place);
    output_ = ScratchOperand(options.precision, rows, options.features, place);
    if (options.backward) {
      grad_output_ = ScratchOperand(options.precision, rows, options.features, place);
      grad_value_ = ScratchOperand(options.precision, cols, options.features, place);
      gradients_.value = grad_value_;
      if (options.form != AttentionForm::cosine) {
        grad_target_ = ScratchOperand(options.precision, rows, score_cols, place);
        grad_source_ = ScratchOperand(options.precision, cols, score_cols, place);
        gradients_.target = grad_target_;
        gradients_.source = grad_source_;
      }
    }
    log_sum_ = ScratchOperand(wide ? Precision::fp64 : Precision::fp32, rows, options.heads, place);
    inputs_ = {target_, source_, value_, {}, 1.0, Random(1)};
    if (options.edge_terms) {
      edge_term_ =
          ScratchOperand(options.precision, problem.graph.num_edges(), options.heads, place);
      inputs_.edge_term = edge_term_;
    }
    if (options.form == AttentionForm::gatv2) inputs_.vector = vector_;
    if (options.form == AttentionForm::cosine) {
      inputs_.target = inputs_.source = {};
      inputs_.vector = vector_;
    }
  }

  void prepare(const PreparedAttention& prepared) {
    workspace_.prepare(prepared.workspace());
    kept_ = ScratchOperand(Precision::fp32, 1, prepared.kept_numbers(), place_);
  }
  void run(const PreparedAttention& prepared, Stream stream) {
    const Operand kept = kept_;
    auto* const numbers = static_cast<float*>(prepared.kept_numbers() > 0 ? kept.data : nullptr);
    prepared.run_keeping(inputs_, {output_, log_sum_}, numbers, stream, workspace_.view());
    if (gradients_.value.absent()) return;
    prepared.run_backward_kept(inputs_, output_, log_sum_, numbers, grad_output_, gradients_,
                               stream, workspace_.view());
  }

  static std::string op(const AttentionProblem&) { return "attention"; }
  static std::string details(const AttentionProblem& problem) {
    const AttentionOptions& options = problem.options;
    return fmt::format("features {}, heads {}, {}, {}{}{}", options.features, options.heads,
                       to_string(options.precision), to_string(options.form),
                       options.dropout > 0 ? ", dropout" : "",
                       options.edge_terms ? ", terms of edges" : "");
  }

 private:
  Place place_;
  ScratchOperand target_, source_, value_, vector_, output_, log_sum_, kept_;
  ScratchOperand grad_output_, grad_target_, grad_source_, grad_value_, edge_term_;
  AttentionInputs inputs_;
  AttentionGradOutputs gradients_;
  TrialWorkspace workspace_;
};

}  // namespace tessera::ops
