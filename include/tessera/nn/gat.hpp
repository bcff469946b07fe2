// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/layer.hpp"

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

/// What GAT and GATv2 share: how the heads of a layer are put together, and what follows them.
class AttentionEnd {
 public:
  AttentionEnd(const GatOptions& options, Placement placement);

  Epilogue epilogue;
  std::optional<Parameter> residual;  ///< weight of the targets' own part

  /// Appends attention, the mean of the heads, the residual and the epilogue.
  step::Value build(const StepInputs& in, ops::AttentionForm form, const GatOptions& options,
                    const step::AttentionValues& values);
};

/// Velickovic et al. (2018): Y[i] = sum over j of softmax_j(leaky_relu(a_dst . W x_i + a_src . W
/// x_j)) W x_j + b, for each head. PyG's GATConv: `att_src`, `att_dst`, `bias`, `lin.weight` (or
/// `lin_src.weight`, `lin_dst.weight`), `res.weight`. Edge weights do not count.
class Gat final : public PairLayer {
 public:
  explicit Gat(const GatOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.output_width(); }
  std::string describe() const override;

 private:
  step::Value build(const StepInputs& inputs) override;

  GatOptions options_;
  Parameter att_source_;
  Parameter att_target_;
  Parameter weight_;
  std::optional<Parameter> target_weight_;
  AttentionEnd end_;
};

/// Brody et al. (2022): attention weights a . leaky_relu(W_r x_i + W_l x_j). PyG's GATv2Conv:
/// `att`, `bias`, `lin_l.weight`, `lin_l.bias`, `lin_r.weight`, `lin_r.bias` (absent with
/// `share_weights`), `res.weight`. Edge weights do not count. Needs targets.
class Gatv2 final : public PairLayer {
 public:
  explicit Gatv2(const GatOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.output_width(); }
  std::string describe() const override;

 private:
  /// Weights and bias of one side.
  struct Side {
    Parameter weight;
    std::optional<Parameter> bias;
  };
  Side side(const char* name, std::int64_t width, Placement placement) const;
  void register_side(Side& side);
  step::Value build(const StepInputs& inputs) override;

  GatOptions options_;
  Parameter att_;
  Side source_;
  std::optional<Side> target_;
  AttentionEnd end_;
};

}  // namespace tessera::nn
