// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/projection.hpp"

namespace tessera::nn {

struct GcnOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool normalise = true;  ///< otherwise the graph is used as it is given
  bool add_self_loops = true;
  /// The input has been multiplied with the adjacency already.
  bool precomputed = false;
  int bits = 0;  ///< of weights and of what is propagated; 0: all of them
  /// Whether the input is rounded to as many before it meets the weights; features have been,
  /// before they were normalised. What the graph sums is always rounded.
  bool rounds_input = true;
  EpilogueOptions output = {};
};

/// Kipf and Welling (2017): Y = D^-1/2 (A + I) D^-1/2 X W^T + b. PyG's GCNConv: `lin.weight`,
/// `bias`. Edge weights count. Works in the narrower of the two widths.
class Gcn final : public Layer {
 public:
  explicit Gcn(const GcnOptions& options, Placement placement = {});

  const Tensor& forward(const Input& input, const Context& context) override;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  bool takes_product() const override { return true; }
  Tensor* backward_product(const GradientProduct& grad_output, const Context& context) override;
  std::int64_t num_graphs() const override { return options_.precomputed ? 0 : 1; }
  std::int64_t input_width() const override { return options_.in; }
  std::int64_t output_width() const override { return options_.out; }
  std::string describe() const override;
  Parameter* leave_bias() override { return epilogue_.leave_bias(); }
  Parameter* leave_sum(const Context& context) override { return epilogue_.leave_sum(context); }
  Epilogue* last_epilogue() override { return &epilogue_; }
  bool append_to(BitSteps& steps) const override;

 private:
  bool rounds_input(const Input& input) const;
  /// Whether the scales of what the graph sums are multiplied before it is rounded to 16 bits, not
  /// by the kernel that sums: on graphs with many edges that one takes almost twice as long with
  /// scales.
  bool scales_before(const Input& input, const Context& context) const;
  /// The codes of what the graph sums hold its column scale.
  const Tensor* summed_scale(const Context& context) const;
  Derivation adjacency() const;
  bool transforms_first(const Input& input) const;
  /// From the gradient of the product before the bias, which it may overwrite.
  Tensor* backward_outer(Tensor& grad_outer, const Context& context);

  GcnOptions options_;
  Projection projection_;
  Rounder input_rounder_, inner_rounder_;
  Epilogue epilogue_;
  Input input_;
  Tensor product_;     ///< X W^T in fp32 where it is scaled before it is rounded
  Tensor inner_;       ///< X W^T, or A X
  Tensor outer_;       ///< the product before the bias
  Tensor grad_outer_;  ///< where the gradient comes as a product
  Tensor grad_inner_;
  Tensor grad_input_;
};

}  // namespace tessera::nn
