// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/gradient_factors.hpp"
#include "tessera/ops/operand.hpp"

/// batch_norm over the rows, for each column: y = gamma * (x - mean) / sqrt(variance + epsilon) +
/// beta. fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a GPU. Of 16-bit features, what
/// belongs to a column (gamma, beta, statistics and their gradients) is fp32.
namespace tessera::ops {

class CallChain;

struct BatchNormOptions {
  double epsilon = 1e-5;
  /// Running statistics move by this share towards the batch's; the running variance is unbiased.
  double momentum = 0.1;
  bool training = true;
};

struct BatchNormState {
  Operand running_mean = {};      ///< 1 x cols
  Operand running_variance = {};  ///< 1 x cols
};

/// What surrounds batch norm in a layer, for its gradient.
struct BatchNormSurroundings {
  ActivationOptions activation = {};  ///< as forward had it
  ConstOperand beta = {};             ///< as forward had it; looked at where there is an activation
  /// The gradient of a bias that was added to `x`, 1 x cols in the type of `x`. It is 0, since the
  /// mean takes the bias away again, except that a column that is not finite passes that on. May be
  /// absent.
  Operand grad_shift = {};
  /// If there are any, they take the place of `grad_y`, which is absent then; `grad_x` or
  /// `grad_columns` must be there.
  GradientFactors factors = {};
  /// If there is one, it receives a row for each column, cols x 8 without gaps, and `grad_x` is
  /// absent: who reads the gradient next makes `grad_x` of it (`NormedGradient`, linear.hpp).
  /// On a GPU, with ReLU or no activation, and without dropout.
  Operand grad_columns = {};
  /// The sums over the rows that the gradient begins with, as `linear_backward` finds them
  /// (`LinearSurroundings::norm_sums`), 2 x cols in fp64: then only `grad_x` takes a pass. Where
  /// `grad_columns` may be. May be absent.
  ConstOperand sums = {};
};

/// What others do of batch norm, before and after it.
struct BatchNormNeighbours {
  /// The moments of `x` in training, as `linear` finds them (linear.hpp), 3 x cols in fp64: then
  /// `x` need not be read for them. May be absent.
  ConstOperand moments = {};
  /// If there is one, it receives a row for each column, cols x 4 without gaps: y = (x - first) *
  /// second + third. With it `y` may be absent: who reads `x` next does this itself.
  Operand columns = {};
};

/// Training: uses the batch's mean and (biased) variance, updates `state`, and writes what backward
/// needs into `saved_mean` and `saved_inverse_deviation` (1 x cols each). Each of these four may be
/// absent; fewer than two rows leave the running variance as it is, no rows the running mean too.
/// Evaluation: uses `state`, writes `y` alone. `gamma` and `beta` may be absent: 1 and 0. `y` may
/// be the memory of `x`. The activation, and dropout, follow in the same pass.
///
/// `shift`, 1 x cols in the type of `x`, is a bias that comes before: the same as if it had been
/// added to every row of `x`, except that `saved_mean` is that of `x` itself, which backward is
/// given. Absent: 0. With a chain (detail/ops/call_chain.hpp) it runs when that does, as the
/// gradient does.
void batch_norm(ConstOperand x, ConstOperand gamma, ConstOperand beta,
                const BatchNormOptions& options, const BatchNormState& state, Operand y,
                Operand saved_mean, Operand saved_inverse_deviation, Device device = {},
                Stream stream = {}, const DenseWorkspace* workspace = nullptr,
                const ActivationOptions& activation = {}, ConstOperand shift = {},
                const BatchNormNeighbours& neighbours = {}, CallChain* chain = nullptr);

/// Gradient of the training form. `grad_x` may be the memory of `grad_y`; each of the three
/// gradients may be absent, and so may `gamma`. With an activation `grad_x` must be there.
void batch_norm_backward(ConstOperand x, ConstOperand gamma, ConstOperand saved_mean,
                         ConstOperand saved_inverse_deviation, ConstOperand grad_y, Operand grad_x,
                         Operand grad_gamma, Operand grad_beta, Device device = {},
                         Stream stream = {}, const DenseWorkspace* workspace = nullptr,
                         const BatchNormSurroundings& around = {}, CallChain* chain = nullptr);

}  // namespace tessera::ops
