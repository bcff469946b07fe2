// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/widened.hpp"

#include <utility>

#include "ops/dense/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// Matrices are rows or cols x features; targets and sources of GAT have a number for each head.
class WidenedAttention final : public PreparedAttention {
 public:
  WidenedAttention(std::unique_ptr<const PreparedAttention> inner, const AttentionProblem& problem)
      : inner_(std::move(inner)),
        features_(problem.options.features),
        score_cols_(problem.options.form == AttentionForm::gat ? problem.options.heads : features_),
        device_(problem.options.device),
        ops_(dense_ops(device_)),
        rows_(problem.graph.num_rows()),
        cols_(problem.graph.num_cols()),
        target_(matrix(rows_, score_cols_)),
        source_(matrix(cols_, score_cols_)),
        value_(matrix(cols_, features_)),
        output_(matrix(rows_, features_)) {
    const bool has_vector = problem.options.form == AttentionForm::gatv2;
    if (has_vector) vector_ = matrix(1, features_);
    if (problem.options.backward) {
      grad_output_ = matrix(rows_, features_);
      grad_target_ = matrix(rows_, score_cols_);
      grad_source_ = matrix(cols_, score_cols_);
      grad_value_ = matrix(cols_, features_);
      if (has_vector) grad_vector_ = matrix(1, features_);
    }
    inside_ = workspace_.add_for({inner_->workspace()});
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    const Operand output = view(output_, rows_, features_, workspace);
    inner_->run(wide(inputs, stream, workspace), {output, outputs.log_sum}, stream,
                part_for(inside_, workspace));
    ops_.run(CopyCall{output, outputs.output}, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    const Operand wide_output = view(output_, rows_, features_, workspace);
    const Operand wide_grad_output = view(grad_output_, rows_, features_, workspace);
    ops_.run(CopyCall{output, wide_output}, stream);
    ops_.run(CopyCall{grad_output, wide_grad_output}, stream);
    AttentionGradOutputs wide_gradients;
    const auto wanted = [&](const Operand& to, const WorkspacePart<float>& part) {
      return to.absent() ? Operand{} : view(part, to.rows, to.cols, workspace);
    };
    wide_gradients.target = wanted(gradients.target, grad_target_);
    wide_gradients.source = wanted(gradients.source, grad_source_);
    wide_gradients.value = wanted(gradients.value, grad_value_);
    wide_gradients.vector = wanted(gradients.vector, grad_vector_);
    wide_gradients.scale = gradients.scale;
    inner_->run_backward(wide(inputs, stream, workspace), wide_output, log_sum, wide_grad_output,
                         wide_gradients, stream, part_for(inside_, workspace));
    const auto store = [&](const Operand& from, const Operand& to) {
      if (!to.absent()) ops_.run(CopyCall{from, to}, stream);
    };
    store(wide_gradients.target, gradients.target);
    store(wide_gradients.source, gradients.source);
    store(wide_gradients.value, gradients.value);
    store(wide_gradients.vector, gradients.vector);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    inner_->weights(wide(inputs, stream, workspace), log_sum, weights, stream,
                    part_for(inside_, workspace));
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  std::vector<std::pair<const char*, Decision>> stages() const override { return inner_->stages(); }

 private:
  WorkspacePart<float> matrix(std::int64_t rows, std::int64_t cols) {
    return workspace_.add<float>(checked_area(rows, cols));
  }

  Operand view(const WorkspacePart<float>& part, std::int64_t rows, std::int64_t cols,
               const WorkspaceView& workspace) const {
    return MatrixView<float>(part.in(workspace), rows, cols, device_);
  }

  static bool same(const ConstOperand& a, const ConstOperand& b) {
    return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.stride == b.stride;
  }

  /// Operands that are one matrix, as AGNN's targets and sources, are copied once.
  AttentionInputs wide(const AttentionInputs& inputs, Stream stream,
                       const WorkspaceView& workspace) const {
    AttentionInputs result = inputs;
    const auto copied = [&](const ConstOperand& from, const WorkspacePart<float>& part) {
      const Operand to = view(part, from.rows, from.cols, workspace);
      ops_.run(CopyCall{from, to}, stream);
      return to;
    };
    result.target = copied(inputs.target, target_);
    result.source =
        same(inputs.source, inputs.target) ? result.target : copied(inputs.source, source_);
    result.value = same(inputs.value, inputs.source) ? result.source : copied(inputs.value, value_);
    if (!inputs.vector.absent()) result.vector = copied(inputs.vector, vector_);
    return result;
  }

  std::unique_ptr<const PreparedAttention> inner_;
  std::int64_t features_, score_cols_;
  Device device_;
  const DenseOps& ops_;
  std::int64_t rows_, cols_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> target_, source_, value_, vector_, output_;
  WorkspacePart<float> grad_output_, grad_target_, grad_source_, grad_value_, grad_vector_;
  WorkspacePart<std::byte> inside_;
};

}  // namespace

std::unique_ptr<const PreparedAttention> widened(std::unique_ptr<const PreparedAttention> in_fp32,
                                                 const AttentionProblem& problem) {
  return std::make_unique<WidenedAttention>(std::move(in_fp32), problem);
}

}  // namespace tessera::ops
