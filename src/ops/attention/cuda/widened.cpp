// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/widened.hpp"

#include <utility>

#include "ops/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// Dot products: targets, outputs and their gradients are rows x features, the others cols x
/// features.
class WidenedAttention final : public PreparedAttention {
 public:
  WidenedAttention(std::unique_ptr<const PreparedAttention> inner, const AttentionProblem& problem)
      : inner_(std::move(inner)),
        features_(problem.options.features),
        device_(problem.options.device),
        ops_(dense_ops(device_)),
        rows_(problem.graph.num_rows()),
        cols_(problem.graph.num_cols()),
        target_(matrix(rows_)),
        source_(matrix(cols_)),
        value_(matrix(cols_)),
        output_(matrix(rows_)) {
    if (problem.options.backward) {
      grad_output_ = matrix(rows_);
      grad_target_ = matrix(rows_);
      grad_source_ = matrix(cols_);
      grad_value_ = matrix(cols_);
    }
    inside_ = workspace_.add_for({inner_->workspace()});
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    const Operand output = view(output_, rows_, workspace);
    inner_->run(wide(inputs, stream, workspace), {output, outputs.log_sum}, stream,
                part_for(inside_, workspace));
    ops_.copy(output, outputs.output, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    const Operand wide_output = view(output_, rows_, workspace);
    const Operand wide_grad_output = view(grad_output_, rows_, workspace);
    ops_.copy(output, wide_output, stream);
    ops_.copy(grad_output, wide_grad_output, stream);
    AttentionGradOutputs wide_gradients;
    if (!gradients.target.absent()) wide_gradients.target = view(grad_target_, rows_, workspace);
    if (!gradients.source.absent()) wide_gradients.source = view(grad_source_, cols_, workspace);
    if (!gradients.value.absent()) wide_gradients.value = view(grad_value_, cols_, workspace);
    wide_gradients.scale = gradients.scale;
    inner_->run_backward(wide(inputs, stream, workspace), wide_output, log_sum, wide_grad_output,
                         wide_gradients, stream, part_for(inside_, workspace));
    const auto store = [&](const Operand& from, const Operand& to) {
      if (!to.absent()) ops_.copy(from, to, stream);
    };
    store(wide_gradients.target, gradients.target);
    store(wide_gradients.source, gradients.source);
    store(wide_gradients.value, gradients.value);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    inner_->weights(wide(inputs, stream, workspace), log_sum, weights, stream,
                    part_for(inside_, workspace));
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  std::vector<std::pair<const char*, Decision>> stages() const override { return inner_->stages(); }

 private:
  WorkspacePart<float> matrix(std::int64_t rows) {
    return workspace_.add<float>(checked_area(rows, features_));
  }

  Operand view(const WorkspacePart<float>& part, std::int64_t rows,
               const WorkspaceView& workspace) const {
    return MatrixView<float>(part.in(workspace), rows, features_, device_);
  }

  static bool same(const ConstOperand& a, const ConstOperand& b) {
    return a.data == b.data && a.rows == b.rows && a.stride == b.stride;
  }

  /// Operands that are one matrix, as AGNN's targets and sources, are copied once.
  AttentionInputs wide(const AttentionInputs& inputs, Stream stream,
                       const WorkspaceView& workspace) const {
    AttentionInputs result = inputs;
    const auto copied = [&](const ConstOperand& from, const WorkspacePart<float>& part) {
      const Operand to = view(part, from.rows, workspace);
      ops_.copy(from, to, stream);
      return to;
    };
    result.target = copied(inputs.target, target_);
    result.source =
        same(inputs.source, inputs.target) ? result.target : copied(inputs.source, source_);
    result.value = same(inputs.value, inputs.source) ? result.source : copied(inputs.value, value_);
    return result;
  }

  std::unique_ptr<const PreparedAttention> inner_;
  std::int64_t features_;
  Device device_;
  const DenseOps& ops_;
  std::int64_t rows_, cols_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> target_, source_, value_, output_;
  WorkspacePart<float> grad_output_, grad_target_, grad_source_, grad_value_;
  WorkspacePart<std::byte> inside_;
};

}  // namespace

AttentionProblem in_fp32(AttentionProblem problem) {
  problem.options.precision = Precision::fp32;
  return problem;
}

std::unique_ptr<const PreparedAttention> widened(std::unique_ptr<const PreparedAttention> in_fp32,
                                                 const AttentionProblem& problem) {
  return std::make_unique<WidenedAttention>(std::move(in_fp32), problem);
}

}  // namespace tessera::ops
