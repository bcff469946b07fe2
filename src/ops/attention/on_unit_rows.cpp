// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/on_unit_rows.hpp"

#include <optional>
#include <utility>

#include "tessera/ops/dense_workspace.hpp"

#include "ops/dense/dense_ops.hpp"

namespace tessera::ops {
namespace {

class AttentionOnUnitRows final : public PreparedAttention {
 public:
  AttentionOnUnitRows(std::unique_ptr<const PreparedAttention> inner,
                      const AttentionProblem& problem)
      : inner_(std::move(inner)),
        rows_(problem.graph.num_rows()),
        features_(problem.options.features),
        precision_(problem.options.precision),
        device_(problem.options.device),
        ops_(dense_ops(device_)),
        unit_(matrix()),
        scaled_(matrix()) {
    if (problem.options.backward) {
      grad_unit_ = matrix();
      grad_scaled_ = matrix();
      for_sums_.emplace(problem.options.place());
    }
    inside_ = workspace_.add_for({inner_->workspace()});
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    inner_->run(dot_inputs(inputs, stream, workspace), outputs, stream,
                part_for(inside_, workspace));
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    const Operand grad_unit = view(grad_unit_, workspace);
    const Operand grad_scaled = view(grad_scaled_, workspace);
    AttentionGradOutputs of_dots;
    of_dots.target = grad_scaled;
    if (!gradients.value.absent()) {
      of_dots.source = grad_unit;
      of_dots.value = gradients.value;
    }
    const AttentionInputs dots = dot_inputs(inputs, stream, workspace);
    inner_->run_backward(dots, output, log_sum, grad_output, of_dots, stream,
                         part_for(inside_, workspace));
    if (!gradients.vector.absent()) {
      ops_.run(DotCall{grad_scaled, dots.source, gradients.vector}, stream, &*for_sums_);
    }
    if (gradients.value.absent()) return;
    ops_.run(UnitRowsGradCall{inputs.value, inputs.vector, grad_unit, grad_scaled, gradients.value,
                              shortest_row},
             stream);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    inner_->weights(dot_inputs(inputs, stream, workspace), log_sum, weights, stream,
                    part_for(inside_, workspace));
  }

  WorkspaceNeed workspace() const override { return workspace_; }
  std::int64_t own_bytes() const noexcept override {
    return inner_->own_bytes() + (for_sums_ ? DenseWorkspace::num_bytes(device_) : 0);
  }
  std::vector<std::pair<const char*, Decision>> stages() const override { return inner_->stages(); }

 private:
  WorkspacePart<std::byte> matrix() {
    const auto bytes = static_cast<std::int64_t>(bytes_per_element(precision_));
    return workspace_.add<std::byte>(checked_area(checked_area(rows_, features_), bytes));
  }
  Operand view(const WorkspacePart<std::byte>& part, const WorkspaceView& workspace) const {
    return {part.in(workspace), storage_of(precision_), device_, rows_, features_};
  }

  AttentionInputs dot_inputs(const AttentionInputs& inputs, Stream stream,
                             const WorkspaceView& workspace) const {
    AttentionInputs dots = inputs;
    const Operand unit = view(unit_, workspace), scaled = view(scaled_, workspace);
    ops_.run(UnitRowsCall{inputs.value, inputs.vector, unit, scaled, shortest_row}, stream);
    dots.target = scaled;
    dots.source = unit;
    dots.vector = {};
    return dots;
  }

  std::unique_ptr<const PreparedAttention> inner_;
  std::int64_t rows_;
  std::int64_t features_;
  Precision precision_;
  Device device_;
  const DenseOps& ops_;
  WorkspaceNeed workspace_;
  WorkspacePart<std::byte> unit_, scaled_;
  WorkspacePart<std::byte> inside_;

  // Of the backward pass, where there is one.
  WorkspacePart<std::byte> grad_unit_, grad_scaled_;
  std::optional<DenseWorkspace> for_sums_;
};

}  // namespace

AttentionProblem as_dot_products(const AttentionProblem& problem) {
  AttentionProblem dots = problem;
  dots.options.form = AttentionForm::dot;
  return dots;
}

std::unique_ptr<const PreparedAttention> on_unit_rows(
    std::unique_ptr<const PreparedAttention> dot_products, const AttentionProblem& problem) {
  return std::make_unique<AttentionOnUnitRows>(std::move(dot_products), problem);
}

}  // namespace tessera::ops
