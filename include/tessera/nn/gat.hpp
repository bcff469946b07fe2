// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/projection.hpp"
#include "tessera/ops/attention.hpp"

namespace tessera::nn {

struct GatOptions {
  std::int64_t in = 0;
  /// Width of the targets' features. GAT: they get weights of their own (`lin_src`, `lin_dst`); 0:
  /// one `lin` for both. GATv2: 0 means as `in`.
  std::int64_t in_target = 0;
  std::int64_t out = 0;  ///< of each head
  std::int64_t heads = 1;
  bool concat = true;  ///< otherwise the mean of the heads
  double negative_slope = 0.2;
  double dropout = 0;  ///< of the attention weights
  bool add_self_loops = true;
  bool residual = false;       ///< adds X_target W_res^T
  bool share_weights = false;  ///< GATv2: one `lin_l` for sources and targets
  EpilogueOptions output = {};

  std::int64_t target_width() const { return in_target == 0 ? in : in_target; }
  std::int64_t attended_width() const { return heads * out; }
  std::int64_t output_width() const { return concat ? heads * out : out; }
};

/// What GAT and GATv2 share: attention over the sources of each target, the mean of the heads, the
/// residual and the epilogue.
class MultiHeadAttention {
 public:
  MultiHeadAttention(const char* layer, ops::AttentionForm form, const GatOptions& options,
                     Placement placement);

  Epilogue epilogue;
  std::optional<Projection> residual;

  /// `number` is the layer's.
  const Tensor& forward(const ops::AttentionInputs& inputs, const Input& targets,
                        std::uint32_t number, const Context& context);
  /// Writes `gradients` and those of bias and residual. `grad_output` is then the gradient before
  /// the bias, from which `backward_residual` adds the residual's part to that of the targets.
  void backward(const ops::AttentionInputs& inputs, const Input& targets, Tensor& grad_output,
                const ops::AttentionGradOutputs& gradients, std::uint32_t number,
                const Context& context);
  void backward_residual(const Tensor& grad_output, Tensor& grad_targets, const Context& context);

 private:
  bool averages() const { return !options_.concat && options_.heads > 1; }
  ops::AttentionPlan plan(const Context& context, bool backward) const;
  static Random random(std::uint32_t number, const Context& context);

  const char* layer_;
  ops::AttentionForm form_;
  GatOptions options_;
  Tensor attended_;
  Tensor log_sum_;
  Tensor kept_;      ///< of attention, for its backward pass
  Tensor combined_;  ///< the mean of the heads, or their sum with the residual
  Tensor grad_attended_;
};

/// Velickovic et al. (2018): Y[i] = sum over j of softmax_j(leaky_relu(a_dst . W x_i + a_src . W
/// x_j)) W x_j + b, for each head. PyG's GATConv: `att_src`, `att_dst`, `bias`, `lin.weight` (or
/// `lin_src.weight`, `lin_dst.weight`), `res.weight`. Edge weights do not count.
class Gat final : public PairLayer {
 public:
  explicit Gat(const GatOptions& options, Placement placement = {});

  Tensor* target_gradient() override;
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.output_width(); }
  std::string describe() const override;
  Parameter* leave_sum(const Context& context) override {
    return attention_.epilogue.leave_sum(context);
  }

 private:
  const Tensor& forward_pair(const Input& sources, const Input& targets,
                             const Context& context) override;
  Tensor* backward_pair(Tensor& grad_output, const Context& context) override;
  Projection& target_projection() { return lin_target_ ? *lin_target_ : lin_; }
  /// Sources and targets are one input with one weight, and so one product.
  bool one_value() const { return sources_ == targets_ && !lin_target_; }
  ops::AttentionInputs attention_inputs() const;
  void forward_scores(const Context& context);
  void backward_scores(const Context& context);
  void backward_targets(Tensor& grad_output, const Context& context);

  GatOptions options_;
  Parameter att_source_;
  Parameter att_target_;
  Projection lin_;
  std::optional<Projection> lin_target_;
  MultiHeadAttention attention_;
  Input sources_;
  Input targets_;
  Tensor value_;         ///< W x of the sources
  Tensor target_value_;  ///< W x of the targets, where it is another
  Tensor score_source_;
  Tensor score_target_;
  Tensor grad_value_;
  Tensor grad_target_value_;
  Tensor grad_score_source_;
  Tensor grad_score_target_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

/// Brody et al. (2022): attention weights a . leaky_relu(W_r x_i + W_l x_j). PyG's GATv2Conv:
/// `att`, `bias`, `lin_l.weight`, `lin_l.bias`, `lin_r.weight`, `lin_r.bias` (absent with
/// `share_weights`), `res.weight`. Edge weights do not count. Needs targets.
class Gatv2 final : public PairLayer {
 public:
  explicit Gatv2(const GatOptions& options, Placement placement = {});

  Tensor* target_gradient() override;
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.output_width(); }
  std::string describe() const override;
  Parameter* leave_sum(const Context& context) override {
    return attention_.epilogue.leave_sum(context);
  }

 private:
  const Tensor& forward_pair(const Input& sources, const Input& targets,
                             const Context& context) override;
  Tensor* backward_pair(Tensor& grad_output, const Context& context) override;
  bool one_value() const { return sources_ == targets_ && !lin_target_; }
  ops::AttentionInputs attention_inputs() const;
  void backward_weights(const Context& context);

  GatOptions options_;
  Parameter att_;
  Projection lin_source_;
  Epilogue bias_source_;
  std::optional<Projection> lin_target_;
  std::optional<Epilogue> bias_target_;
  MultiHeadAttention attention_;
  Input sources_;
  Input targets_;
  Tensor source_value_;
  Tensor target_value_;
  Tensor grad_value_;
  Tensor grad_source_value_;
  Tensor grad_target_value_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

}  // namespace tessera::nn
