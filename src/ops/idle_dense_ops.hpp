// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense_ops.hpp"

namespace tessera::ops {

/// The dense ops of a pass that only plans: none of them does anything.
class IdleDenseOps final : public DenseOps {
 public:
  void gemm(const GemmCall&, Stream, const DenseWorkspace*) const override {}

  void fill(Operand, double, Stream) const override {}
  void copy(ConstOperand, Operand, Stream) const override {}
  void upload(ConstOperand, Operand, Stream) const override {}
  void download(ConstOperand, Operand, Stream) const override {}
  void transpose(ConstOperand, Operand, Stream) const override {}
  void add_scaled(const ScaleFactor&, ConstOperand, double, Operand, Stream) const override {}
  void scale_rows(ConstOperand, ConstOperand, Operand, Stream) const override {}
  void dot(ConstOperand, ConstOperand, Operand, Stream, const DenseWorkspace*) const override {}
  void linear_backward(const LinearGradCall&, Stream, const DenseWorkspace*) const override {}

  void round_to_codes(const RoundingCall&, Stream) const override {}

  void activate(ConstOperand, ConstOperand, const ActivationFormula&, Operand,
                Stream) const override {}
  void activate_backward(ConstOperand, ConstOperand, const ActivationFormula&, ConstOperand,
                         Operand, Operand, Stream, const DenseWorkspace*,
                         const GradientFactors&) const override {}
  void row_normalise(ConstOperand, Operand, double, Stream) const override {}
  void row_normalise_backward(ConstOperand, ConstOperand, Operand, double, Stream) const override {}

  void unit_rows(ConstOperand, ConstOperand, Operand, Operand, double, Stream) const override {}
  void unit_rows_backward(ConstOperand, ConstOperand, Operand, Operand, Operand, double,
                          Stream) const override {}

  void batch_norm(const BatchNormCall&, Stream, const DenseWorkspace*) const override {}
  void batch_norm_backward(const BatchNormGradCall&, Stream, const DenseWorkspace*) const override {
  }

  void head_dot(ConstOperand, ConstOperand, Operand, Stream) const override {}
  void head_dot_backward(ConstOperand, ConstOperand, ConstOperand, Operand, Operand, Stream,
                         const DenseWorkspace*) const override {}
  void head_dots(ConstOperand, ConstOperand, ConstOperand, Operand, Operand,
                 Stream) const override {}
  void head_dots_backward(const HeadDotsGradCall&, Stream, const DenseWorkspace*) const override {}
  void head_mean(ConstOperand, Operand, Stream) const override {}
  void head_mean_backward(ConstOperand, Operand, Stream) const override {}

  void loss(ConstOperand, const LossTargets::State&, Operand, double*, Stream,
            const DenseWorkspace*, Operand) const override {}

  void evaluate(ConstOperand, const EvaluationTargets::State&, EvaluationNumbers*, Stream,
                const DenseWorkspace*) const override {}

  void optimiser_step(const OptimiserCall&, Stream) const override {}
  void advance(StepClock*, Stream) const override {}
};

}  // namespace tessera::ops
