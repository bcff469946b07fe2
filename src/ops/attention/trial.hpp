// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/attention/kernel.hpp"
#include "ops/plan/trial_operands.hpp"

namespace tessera::ops {

/// What a measuring plan needs of attention: see spmm/trial.hpp. The backward pass counts where
/// there is one.
class AttentionTrial : public TrialOperands {
 public:
  AttentionTrial(const AttentionProblem& problem, const Place& place) : TrialOperands(place) {
    const AttentionOptions& options = problem.options;
    const std::int64_t rows = problem.graph.num_rows(), cols = problem.graph.num_cols();
    const bool is_cosine = options.form == AttentionForm::cosine;
    const std::int64_t score_cols =
        options.form == AttentionForm::gat ? options.heads : options.features;
    const auto given = [&](std::int64_t num_rows, std::int64_t num_cols) {
      return matrix(options.precision, num_rows, num_cols);
    };
    inputs_.value = given(cols, options.features);
    outputs_.output = given(rows, options.features);
    const bool wide = options.precision == Precision::fp64;
    outputs_.log_sum = matrix(wide ? Precision::fp64 : Precision::fp32, rows, options.heads);
    if (!is_cosine) {
      inputs_.target = given(rows, score_cols);
      inputs_.source = given(cols, score_cols);
    }
    if (is_cosine || options.form == AttentionForm::gatv2) {
      inputs_.vector = given(1, options.features);
    }
    inputs_.random = Random(1);
    if (options.edge_terms) {
      const bool by_feature = options.form == AttentionForm::gatv2;
      inputs_.edge_term =
          given(problem.graph.num_edges(), by_feature ? options.features : options.heads);
    }
    if (!options.backward) return;
    grad_output_ = given(rows, options.features);
    gradients_.value = given(cols, options.features);
    if (is_cosine) return;
    gradients_.target = given(rows, score_cols);
    gradients_.source = given(cols, score_cols);
  }

  void prepare(const PreparedAttention& prepared) {
    TrialOperands::prepare(prepared);
    if (prepared.kept_numbers() <= kept_.cols) return;
    kept_ = matrix(Precision::fp32, 1, prepared.kept_numbers());
  }
  void run(const PreparedAttention& prepared, Stream stream) {
    auto* const kept = static_cast<float*>(prepared.kept_numbers() > 0 ? kept_.data : nullptr);
    prepared.run_keeping(inputs_, outputs_, kept, stream, workspace());
    if (gradients_.value.absent()) return;
    prepared.run_backward_kept(inputs_, outputs_.output, outputs_.log_sum, kept, grad_output_,
                               gradients_, stream, workspace());
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
  AttentionInputs inputs_;
  AttentionOutputs outputs_;
  Operand grad_output_, kept_;
  AttentionGradOutputs gradients_;
};

}  // namespace tessera::ops
