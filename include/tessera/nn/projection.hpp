// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/names.hpp"
#include "tessera/nn/rounder.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::nn {

/// y = x W^T for a dense or a sparse x; W is out x in, as in PyTorch.
class Projection {
 public:
  /// With `bits`, products use W as codes of so many bits would give it back, a range for each
  /// output.
  Projection(std::string name, std::int64_t in, std::int64_t out, Initial initial,
             Placement placement, int bits = 0);

  Parameter weight;

  /// Of the weights, a range for each output.
  const Rounder& rounder() const noexcept { return rounder_; }
  std::int64_t in() const noexcept { return weight.value.cols(); }
  std::int64_t out() const noexcept { return weight.value.rows(); }

  /// y = x W^T + beta * y, beta 0 or 1. With beta = 0 `y` takes the shape it needs.
  void forward(const Input& x, double beta, Tensor& y, const Context& context);
  /// y = x W^T + bias, which may be null, for a dense x.
  void forward_dense(const Tensor& x, const Parameter* bias, Tensor& y, const Context& context,
                     const ops::LinearSurroundings& around = {});
  /// y = x W^T of a dense x, where y is fp32 and x may have 16 bits: the sums as they are.
  void forward_in_fp32(const Tensor& x, Tensor& y, const Context& context);
  /// y = the epilogue of x W^T, in one pass over a sparse x; only where `can_finish`.
  void forward_and_finish(const Input& x, Epilogue& epilogue, std::uint32_t layer_number, Tensor& y,
                          const Context& context);
  /// Writes the weight's gradient, that of the bias where there is one, and that of x unless null.
  void backward(const Input& x, const Tensor& grad_y, Parameter* bias, Tensor* grad_x,
                const Context& context, const ops::LinearSurroundings& around = {});
  /// The same of a gradient that batch norm left to do something to (`around.normed`), which may be
  /// absent beside its factors.
  void backward_normed(const Tensor& x, ops::ConstOperand grad_y, Tensor* grad_x,
                       const Context& context, const ops::LinearSurroundings& around);
  /// Writes the weight's gradient (adds to it with `accumulate`), for two uses of one weight.
  void backward_weight(const Input& x, const Tensor& grad_y, const Context& context,
                       bool accumulate = false);
  /// grad_x = grad_y W + beta * grad_x.
  void backward_input(const Tensor& grad_y, double beta, Tensor& grad_x, const Context& context);

 private:
  /// What products use: the weight, or its rounded copy, made by the last forward pass.
  const Tensor& used_weight(const Context& context);
  const Tensor& turned_weight(const Context& context);

  Rounder rounder_;
  Tensor turned_;   ///< W^T, or its gradient, for sparse x
  Tensor product_;  ///< for a sparse x with beta = 1
};

}  // namespace tessera::nn
