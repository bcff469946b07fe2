// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/nn/names.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/quant/affine.hpp"
#include "tessera/quant/bit_tensor.hpp"

namespace tessera::nn {

/// A product of codes: with weights, or with the pattern of a graph; then what its epilogue does.
struct BitStep {
  std::string layer;  ///< that it is a part of
  bool aggregates = false;
  std::int64_t in = 0;
  std::int64_t out = 0;
  /// Of the codes that go in: one range, or one for each column. Those that a graph sums hold its
  /// column scale.
  quant::Affine input;
  quant::BitTensor weights;  ///< out x in
  quant::Affine weight_ranges;
  Derivation adjacency = nullptr;
  float own = 0;  ///< as `ops::BitOptions::own`
  std::vector<float> bias, norm_scale, norm_shift;
  ops::BitActivation activation = ops::BitActivation::none;
};

/// A model of few bits as a chain of products, each of which gives codes to the next one; the last
/// gives numbers. It is made of a model on the CPU in fp32, after a forward pass that computed with
/// rounded numbers: ranges are those that the pass found, and stay.
class BitSteps {
 public:
  /// What layers append. `input` rounded what goes in; null: the features, as they came.
  void multiply(std::string layer, const Parameter& weight, const Rounder& weight_rounder,
                const Rounder* input);
  void aggregate(std::string layer, std::int64_t width, Derivation adjacency, float own,
                 const Rounder& input);
  void add(const Tensor& bias);
  void normalise(std::vector<float> scale, std::vector<float> shift);
  /// Throws `unsupported` for what is neither relu nor nothing.
  void activate(ops::Activation activation);
  /// The last layer of a stack comes next.
  void begin_last_layer() { last_layer_ = num_steps(); }
  /// Layer `first` of a stack and those behind it are computed in floating point.
  void end_before(std::int64_t first) {
    first_float_layer_ = first;
    last_layer_ = -1;
  }

  const std::vector<BitStep>& steps() const noexcept { return steps_; }
  std::int64_t num_steps() const noexcept { return static_cast<std::int64_t>(steps_.size()); }
  /// Whether the first product takes features as they came, rounded in one range of their own and
  /// then scaled by rows; otherwise they are rounded as the first step says.
  bool takes_plain_features() const noexcept { return takes_plain_features_; }
  void set_feature_range(quant::Affine range);
  /// The first so many steps; the last of them gives numbers.
  BitSteps first(std::int64_t count) const;
  /// The step that begins the last layer of the stack; -1: none does.
  std::int64_t last_layer() const noexcept { return last_layer_; }
  /// -1: there is none.
  std::int64_t first_float_layer() const noexcept { return first_float_layer_; }

 private:
  BitStep& last();

  std::vector<BitStep> steps_;
  bool takes_plain_features_ = false;
  std::int64_t last_layer_ = -1;
  std::int64_t first_float_layer_ = -1;
};

/// The codes that `ops::round_to_codes` rounds to, from the ranges that it gave, two numbers each.
quant::Affine affine_of(std::span<const float> ranges, int bits);

}  // namespace tessera::nn
