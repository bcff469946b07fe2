// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/linear.hpp"
#include "tessera/nn/norm.hpp"
#include "tessera/nn/projection.hpp"
#include "tessera/ops/aggregate_update.hpp"

namespace tessera::nn {

struct GinOptions {
  std::int64_t in = 0;
  std::int64_t hidden = 0;  ///< of the perceptron; 0: as `out`
  std::int64_t out = 0;
  double eps = 0;
  bool train_eps = false;
  bool batch_norm = true;  ///< after the perceptron's first layer
  EpilogueOptions output = {};
  int bits = 0;  ///< of weights and of what is summed; 0: all of them
  /// Whether the input is rounded to as many bits before it meets the weights; features have been.
  bool rounds_input = true;
};

/// Xu et al. (2019): Y = MLP((1 + eps) X_target + sum of X_source), where MLP is Linear, batch
/// norm, ReLU, Linear. PyG's GINConv around Sequential(Linear, BatchNorm1d, ReLU, Linear):
/// `nn.0.weight`, `nn.1.weight`, …, `nn.3.weight`, `eps` (without batch norm the second Linear is
/// `nn.2`). Edge weights do not count.
class Gin final : public PairLayer {
 public:
  explicit Gin(const GinOptions& options, Placement placement = {});

  Tensor* target_gradient() override;
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  Parameter* leave_bias() override { return second_.leave_bias(); }
  Parameter* leave_sum(const Context& context) override { return second_.leave_sum(context); }
  const ColumnMoments* leave_moments() override { return second_.leave_moments(); }
  bool takes_normed(const Context& context) override { return second_.takes_normed(context); }
  void take_normed(const ops::NormedGradient& normed) override { second_.take_normed(normed); }
  bool append_to(BitSteps& steps) const override;
  bool lets_calls_wait() const override { return options_.bits == 0; }

 private:
  const Tensor& forward_pair(const Input& sources, const Input& targets,
                             const Context& context) override;
  Tensor* backward_pair(Tensor& grad_output, const Context& context) override;
  bool transforms_first(const Input& sources, const Input& targets) const;
  bool has_own_targets() const { return !targets_.absent() && !(sources_ == targets_); }
  const Tensor& summed_sources() const;
  const Tensor& summed_targets() const;
  /// Sums and the first product as one op, where that is expected to be faster; empty: in stages.
  ops::AggregateUpdatePlan fused_plan(const Context& context) const;
  const Tensor& forward_fused(const ops::AggregateUpdatePlan& plan, const Context& context);
  /// What goes into the batch norm, or into the second product.
  const Tensor& forward_in_stages(const Context& context);
  /// From the gradient of (1 + eps) x_target + sum of x_source to those of eps and both x.
  void backward_sum(const Tensor& grad, Tensor& grad_sources, Tensor& grad_targets,
                    const Context& context);
  /// The first product finds the moments for the batch norm that follows, where that costs nothing.
  ops::LinearSurroundings after_first(const Context& context);
  Tensor* backward_transformed(const Tensor& grad, const Context& context);
  Tensor* backward_aggregated(const Tensor& grad, const Context& context);
  /// Whether something is asked of the gradient of what was summed over neighbours.
  bool goes_on() const noexcept { return needs_input_gradient() || eps_.trainable; }
  /// Whether the first product takes the gradient of what batch norm put out, which may be left as
  /// a product.
  bool first_takes_normed(bool is_product, const Context& context) const;
  Tensor* backward_normed(ops::ConstOperand grad, const ops::GradientFactors& factors,
                          const Context& context);
  /// From the gradient of what was summed over neighbours, `grad_inner_`.
  Tensor* backward_neighbours(const Context& context);

  GinOptions options_;
  Parameter eps_;
  Projection first_;
  Rounder source_rounder_, target_rounder_, inner_rounder_;
  Epilogue first_epilogue_;               ///< bias, and ReLU where there is no batch norm
  std::optional<ColumnMoments> moments_;  ///< of what goes into the batch norm
  std::optional<BatchNorm> norm_;
  Linear second_;
  Input sources_;
  Input targets_;
  Tensor inner_;          ///< X W^T of the sources, or nothing
  Tensor inner_targets_;  ///< X W^T of the targets where they differ from the sources
  Tensor combined_;       ///< (1 + eps) x + sum, in the width it was computed in
  Tensor hidden_;
  Tensor grad_inner_;
  Tensor grad_inner_targets_;
  Tensor grad_sources_;
  Tensor grad_targets_;
};

}  // namespace tessera::nn
