// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/widened.hpp"

#include <mutex>
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
        place_(problem.options.place()),
        ops_(dense_ops(place_.device)),
        rows_(problem.graph.num_rows()),
        cols_(problem.graph.num_cols()),
        target_(matrix(rows_)),
        source_(matrix(cols_)),
        value_(matrix(cols_)),
        output_(matrix(rows_)) {}

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs,
           Stream stream) const override {
    inner_->run(wide(inputs, stream), {view(output_, rows_), outputs.log_sum}, stream);
    ops_.copy(view(output_, rows_), outputs.output, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients,
                    Stream stream) const override {
    prepare_backward();
    ops_.copy(output, view(output_, rows_), stream);
    ops_.copy(grad_output, view(grad_output_, rows_), stream);
    AttentionGradOutputs wide_gradients;
    if (!gradients.target.absent()) wide_gradients.target = view(grad_target_, rows_);
    if (!gradients.source.absent()) wide_gradients.source = view(grad_source_, cols_);
    if (!gradients.value.absent()) wide_gradients.value = view(grad_value_, cols_);
    wide_gradients.scale = gradients.scale;
    inner_->run_backward(wide(inputs, stream), view(output_, rows_), log_sum,
                         view(grad_output_, rows_), wide_gradients, stream);
    const auto store = [&](const Operand& from, const Operand& to) {
      if (!to.absent()) ops_.copy(from, to, stream);
    };
    store(wide_gradients.target, gradients.target);
    store(wide_gradients.source, gradients.source);
    store(wide_gradients.value, gradients.value);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights,
               Stream stream) const override {
    inner_->weights(wide(inputs, stream), log_sum, weights, stream);
  }

  void prepare_backward() const override {
    inner_->prepare_backward();
    std::call_once(backward_once_, [&] {
      grad_output_ = matrix(rows_);
      grad_target_ = matrix(rows_);
      grad_source_ = matrix(cols_);
      grad_value_ = matrix(cols_);
      synchronise(place_.device, place_.stream);
    });
  }

  std::int64_t workspace_bytes() const noexcept override {
    const std::int64_t numbers = target_.size() + source_.size() + value_.size() + output_.size() +
                                 grad_output_.size() + grad_target_.size() + grad_source_.size() +
                                 grad_value_.size();
    return numbers * static_cast<std::int64_t>(sizeof(float)) + inner_->workspace_bytes();
  }

  std::string stages() const override { return inner_->stages(); }

 private:
  Buffer<float> matrix(std::int64_t rows) const {
    return Buffer<float>(checked_area(rows, features_), place_);
  }

  /// The buffers belong to the plan, which runs once at a time.
  Operand view(const Buffer<float>& buffer, std::int64_t rows) const {
    return MatrixView<float>(const_cast<float*>(buffer.data()), rows, features_);
  }

  static bool same(const ConstOperand& a, const ConstOperand& b) {
    return a.data == b.data && a.rows == b.rows && a.stride == b.stride;
  }

  /// Operands that are one matrix, as AGNN's targets and sources, are copied once.
  AttentionInputs wide(const AttentionInputs& inputs, Stream stream) const {
    AttentionInputs result = inputs;
    const auto copied = [&](const ConstOperand& from, const Buffer<float>& buffer) {
      const Operand to = view(buffer, from.rows);
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
  Place place_;
  const DenseOps& ops_;
  std::int64_t rows_, cols_;
  Buffer<float> target_, source_, value_, output_;

  // Made before the first backward run.
  mutable std::once_flag backward_once_;
  mutable Buffer<float> grad_output_, grad_target_, grad_source_, grad_value_;
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
