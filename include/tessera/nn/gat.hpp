// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/layer.hpp"
#include "tessera/nn/parts.hpp"
#include "tessera/ops/attention.hpp"

namespace tessera::nn {

struct GatOptions {
  std::int64_t in = 0;
  /// Bipartite with weights of their own for the targets (`lin_src`, `lin_dst`); 0: one `lin`.
  std::int64_t in_target = 0;
  std::int64_t out = 0;  ///< of each head
  std::int64_t heads = 1;
  bool concat = true;  ///< otherwise the mean of the heads
  double negative_slope = 0.2;
  double dropout = 0;  ///< of the attention weights
  bool add_self_loops = true;
  bool residual = false;  ///< adds X_target W_res^T
  EpilogueOptions output = {};
};

/// Velickovic et al. (2018): Y[i] = sum over j of softmax_j(leaky_relu(a_dst . W x_i + a_src . W
/// x_j)) W x_j + b, for each head. PyG's GATConv: `att_src`, `att_dst`, `bias`, `lin.weight` (or
/// `lin_src.weight`, `lin_dst.weight`), `res.weight`. Edge weights do not count.
class Gat final : public PairLayer {
 public:
  explicit Gat(const GatOptions& options, Placement placement = {});

  using PairLayer::forward;
  const Tensor& forward(const Input& sources, const Input& targets,
                        const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  Tensor* target_gradient() override;
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override {
    return options_.out * (options_.concat ? options_.heads : 1);
  }
  std::string describe() const override;

 private:
  Projection& target_projection() { return lin_target_ ? *lin_target_ : lin_; }
  const ops::AttentionPlan& plan(const Context& context) const;
  ops::AttentionInputs attention_inputs(const Context& context) const;
  bool one_input() const { return sources_ == targets_ && !lin_target_; }

  GatOptions options_;
  Parameter att_source_;
  Parameter att_target_;
  Projection lin_;
  std::optional<Projection> lin_target_;
  std::optional<Projection> residual_;
  Epilogue epilogue_;
  Input sources_;
  Input targets_;
  Tensor value_;         ///< W x of the sources
  Tensor target_value_;  ///< W x of the targets, where it is another
  Tensor score_source_;
  Tensor score_target_;
  Tensor attended_;
  Tensor log_sum_;
  Tensor averaged_;
  Tensor grad_attended_;
  Tensor grad_value_;
  Tensor grad_target_value_;
  Tensor grad_score_source_;
  Tensor grad_score_target_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

struct Gatv2Options {
  std::int64_t in = 0;
  std::int64_t in_target = 0;  ///< width of the targets' features; 0: as `in`
  std::int64_t out = 0;        ///< of each head
  std::int64_t heads = 1;
  bool concat = true;
  double negative_slope = 0.2;
  double dropout = 0;
  bool add_self_loops = true;
  bool share_weights = false;
  bool residual = false;
  EpilogueOptions output = {};
};

/// Brody et al. (2022): attention weights a . leaky_relu(W_r x_i + W_l x_j). PyG's GATv2Conv:
/// `att`, `bias`, `lin_l.weight`, `lin_l.bias`, `lin_r.weight`, `lin_r.bias` (absent with
/// `share_weights`), `res.weight`. Edge weights do not count.
class Gatv2 final : public PairLayer {
 public:
  explicit Gatv2(const Gatv2Options& options, Placement placement = {});

  using PairLayer::forward;
  const Tensor& forward(const Input& sources, const Input& targets,
                        const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  Tensor* target_gradient() override;
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override {
    return options_.out * (options_.concat ? options_.heads : 1);
  }
  std::string describe() const override;

 private:
  const ops::AttentionPlan& plan(const Context& context) const;
  ops::AttentionInputs attention_inputs(const Context& context) const;
  const Tensor& target_value() const;

  Gatv2Options options_;
  Parameter att_;
  Projection lin_source_;
  std::optional<Parameter> bias_source_;
  std::optional<Projection> lin_target_;
  std::optional<Parameter> bias_target_;
  std::optional<Projection> residual_;
  Epilogue epilogue_;
  Input sources_;
  Input targets_;
  Tensor source_value_;
  Tensor target_value_;
  Tensor attended_;
  Tensor log_sum_;
  Tensor averaged_;
  Tensor grad_attended_;
  Tensor grad_value_;
  Tensor grad_source_value_;
  Tensor grad_target_value_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

}  // namespace tessera::nn
