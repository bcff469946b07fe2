// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/gradient_factors.hpp"
#include "tessera/ops/operand.hpp"

/// A dense layer, as PyTorch's Linear: W is out x in, the bias 1 x out. The types are those of
/// `gemm`, all matrices of the same one, and `arithmetic` is as there.
namespace tessera::ops {

class CallChain;

/// Says of `grad_y` that it is not the gradient of `y`, but of what a batch norm, and perhaps ReLU,
/// made of it: what batch norm left to do (`BatchNormSurroundings::grad_columns`), out x 8.
struct NormedGradient {
  ConstOperand y = {};  ///< as `linear` wrote it; absent: `grad_y` is its gradient
  ConstOperand columns = {};
  bool relu = false;
  GradientFactors factors = {};  ///< if there are any, they take the place of `grad_y`

  bool absent() const noexcept { return y.absent(); }
};

/// What surrounds a dense layer, where `linear_fuses`: batch norms before and after it.
struct LinearSurroundings {
  /// What a batch norm left to do to `x` (`BatchNormNeighbours::columns`), in x 4; then `x` stands
  /// for what that makes of it, rounded as if it were stored, and `grad_x` is the gradient of that.
  /// May be absent.
  ConstOperand columns = {};
  bool relu = false;  ///< follows it
  /// For a batch norm that follows: 3 x out in fp64, the first row of `y`, or something like it,
  /// the sums of the distances from it, and those of their squares. May be absent.
  Operand moments = {};
  /// Of the gradients, for any shape: `x` is what ReLU put out, and `grad_x` becomes the gradient
  /// of what ReLU was given. Not together with `columns`.
  bool before_relu = false;
  /// 1 x in: the sums of the columns of `grad_x`. May be absent.
  Operand grad_x_sums = {};
  /// Of the gradients, where `linear_gradient_fuses`; all of them but that of a bias must be there.
  /// Or of the weight's alone, where `linear_weight_gradient_fuses`, then without `factors`,
  /// `columns` and `norm_sums`. Rows of `x`, `y`, `grad_y` and `grad_x` begin on boundaries of 16
  /// bytes; those of `x`, the last one too, are read up to the next one. Not together with
  /// `before_relu` or `grad_x_sums`.
  NormedGradient normed = {};
  /// With `normed` and `columns`, for the gradient of the batch norm before
  /// (`BatchNormSurroundings::sums`): 2 x in in fp64. May be absent.
  Operand norm_sums = {};
  /// `y` is what ReLU makes of product and bias, where `linear_activates`. Not together with
  /// `columns` or `moments`.
  bool relu_behind = false;
};

/// Whether it pays that a dense layer does what surrounds it, so that nothing else reads or writes
/// the whole matrices for that: where rows are many and short. Depends on the shape alone, and on
/// what the device can do.
bool linear_fuses(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                  std::int64_t out);

/// Whether a dense layer ends in ReLU (`LinearSurroundings::relu_behind`), so that no pass of its
/// own reads and writes `y`: on GPUs with matrix units that read shared memory, where rows are many
/// and not long.
bool linear_activates(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                      std::int64_t out);

/// Whether the gradients of a dense layer come from that of a batch norm's output
/// (`LinearSurroundings::normed`) in one pass, so that the gradient of `y` is written nowhere: on
/// GPUs with matrix units that read shared memory, where rows are many and widths multiples of 4.
bool linear_gradient_fuses(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                           std::int64_t out);

/// The same of the weight's gradient alone: rows of `x` may be longer, and of any width.
bool linear_weight_gradient_fuses(Device device, ElementType type, std::int64_t rows,
                                  std::int64_t in, std::int64_t out);

/// y = x W^T + bias. The bias may be absent. With a chain (detail/ops/call_chain.hpp) it runs when
/// that does, as its gradients do.
void linear(ConstOperand x, ConstOperand weight, ConstOperand bias, Operand y, Device device = {},
            Stream stream = {}, const DenseWorkspace* workspace = nullptr,
            Precision arithmetic = Precision::fp32, const LinearSurroundings& around = {},
            CallChain* chain = nullptr);

/// Its gradients: grad_weight = grad_y^T x, grad_bias the sum of `grad_y` over the rows, grad_x =
/// grad_y W. Each of them may be absent; without `grad_x` so may `weight`. On a GPU all of them
/// come from one launch where the matrices are small.
void linear_backward(ConstOperand x, ConstOperand weight, ConstOperand grad_y, Operand grad_weight,
                     Operand grad_bias, Operand grad_x, Device device = {}, Stream stream = {},
                     const DenseWorkspace* workspace = nullptr,
                     Precision arithmetic = Precision::fp32, const LinearSurroundings& around = {},
                     CallChain* chain = nullptr);

}  // namespace tessera::ops
