// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/nn/norm.hpp"
#include "tessera/nn/projection.hpp"

namespace tessera::nn {

struct LinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  EpilogueOptions output = {};
  int bits = 0;  ///< of weights and input; 0: all of them
};

/// y = x W^T + b, then activation and dropout. PyTorch's Linear: `weight`, `bias`.
class Linear final : public Layer {
 public:
  explicit Linear(const LinearOptions& options, Placement placement = {});

  const Tensor& forward(const Input& input, const Context& context) override;
  /// The same of what batch norm makes of a dense `x`, where `fuses`; so is backward then, for what
  /// is normalised.
  const Tensor& forward(const Tensor& x, BatchNorm& norm, const Context& context);
  /// Whether that pays, for so many rows.
  bool fuses(std::int64_t rows, const BatchNorm& norm, const Context& context) const;
  Tensor* backward(Tensor& grad_output, const Context& context) override;
  std::int64_t input_width() const override { return projection_.in(); }
  std::int64_t output_width() const override { return projection_.out(); }
  std::string describe() const override;
  Parameter* leave_bias() override { return epilogue_.leave_bias(); }
  Parameter* leave_sum(const Context& context) override { return epilogue_.leave_sum(context); }
  Epilogue* last_epilogue() override { return &epilogue_; }
  const ColumnMoments* leave_moments() override;
  bool takes_normed(const Context& context) override;
  void take_normed(const ops::NormedGradient& normed) override { normed_ = normed; }
  bool append_to(BitSteps& steps) const override;
  bool lets_calls_wait() const override { return !input_rounder_.rounds(); }

 private:
  /// `around_` has what is done to x.
  const Tensor& forward_dense(const Tensor& x, const Context& context);

  Projection projection_;
  Rounder input_rounder_;
  Epilogue epilogue_;
  Input input_;
  ops::LinearSurroundings around_;    ///< of the last pass
  BatchNorm* norm_before_ = nullptr;  ///< whose rows the last pass read
  ops::NormedGradient normed_;        ///< for the next backward pass
  std::optional<ColumnMoments> moments_;
  Tensor product_;
  Tensor grad_input_;
};

}  // namespace tessera::nn
