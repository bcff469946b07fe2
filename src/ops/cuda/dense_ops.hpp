// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense_ops.hpp"

namespace tessera::ops {

/// The dense ops of one GPU. Each op is in the folder of its name, under cuda/.
class CudaDenseOps final : public DenseOps {
 public:
  explicit CudaDenseOps(Device device) : device_(device) {}

  void gemm(const GemmCall& call, Stream stream, const DenseWorkspace* workspace) const override;
  void linear_backward(const LinearGradCall& call, Stream stream,
                       const DenseWorkspace* workspace) const override;

  bool chains(const ChainCall& call) const override;
  std::size_t longest_chain() const override;
  void run_chain(std::span<const ChainCall> calls, Stream stream,
                 const DenseWorkspace* workspace) const override;

  void fill(Operand y, double value, Stream stream) const override;
  void copy(ConstOperand x, Operand y, Stream stream) const override;
  void upload(ConstOperand x, Operand y, Stream stream) const override;
  void download(ConstOperand x, Operand y, Stream stream) const override;
  void transpose(ConstOperand x, Operand y, Stream stream) const override;
  void add_scaled(const ScaleFactor& alpha, ConstOperand x, double beta, Operand y,
                  Stream stream) const override;
  void scale_rows(ConstOperand x, ConstOperand scale, Operand y, Stream stream) const override;
  void dot(ConstOperand x, ConstOperand y, Operand result, Stream stream,
           const DenseWorkspace* workspace) const override;

  void round_to_codes(const RoundingCall& call, Stream stream) const override;

  void activate(ConstOperand x, ConstOperand bias, const ActivationFormula& formula, Operand y,
                Stream stream) const override;
  void activate_backward(ConstOperand x, ConstOperand bias, const ActivationFormula& formula,
                         ConstOperand grad_y, Operand grad_x, Operand grad_bias, Stream stream,
                         const DenseWorkspace* workspace,
                         const GradientFactors& factors) const override;
  bool multiplies_factors(ElementType, std::int64_t rows, std::int64_t k) const override {
    return pays_as_factors(rows, k);
  }
  void row_normalise(ConstOperand x, Operand y, double epsilon, Stream stream) const override;
  void row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x, double epsilon,
                              Stream stream) const override;

  void unit_rows(ConstOperand x, ConstOperand factor, Operand unit, Operand scaled, double epsilon,
                 Stream stream) const override;
  void unit_rows_backward(ConstOperand x, ConstOperand factor, Operand grad_unit,
                          Operand grad_scaled, Operand grad_x, double epsilon,
                          Stream stream) const override;

  void batch_norm(const BatchNormCall& call, Stream stream,
                  const DenseWorkspace* workspace) const override;
  void batch_norm_backward(const BatchNormGradCall& call, Stream stream,
                           const DenseWorkspace* workspace) const override;

  void head_dot(ConstOperand x, ConstOperand vector, Operand y, Stream stream) const override;
  void head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y, Operand grad_x,
                         Operand grad_vector, Stream stream,
                         const DenseWorkspace* workspace) const override;
  void head_dots(ConstOperand x, ConstOperand first, ConstOperand second, Operand of_first,
                 Operand of_second, Stream stream) const override;
  void head_dots_backward(const HeadDotsGradCall& call, Stream stream,
                          const DenseWorkspace* workspace) const override;
  void head_mean(ConstOperand x, Operand y, Stream stream) const override;
  void head_mean_backward(ConstOperand grad_y, Operand grad_x, Stream stream) const override;

  void loss(ConstOperand logits, const LossTargets::State& targets, Operand grad_logits,
            double* value, Stream stream, const DenseWorkspace* workspace,
            Operand grad_sums) const override;

  void evaluate(ConstOperand logits, const EvaluationTargets::State& targets,
                EvaluationNumbers* numbers, Stream stream,
                const DenseWorkspace* workspace) const override;

  void optimiser_step(const OptimiserCall& call, Stream stream) const override;
  void advance(StepClock* clock, Stream stream) const override;

 private:
  Device device_;
};

/// Made at the first call for a GPU, then kept.
const DenseOps& cuda_dense_ops(Device device);

}  // namespace tessera::ops
