// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"
#include "tessera/ops/spmm.hpp"

/// aggregate_update: every target gathers the features of its sources, and a dense layer follows.
///
///     Z = A X + (1 + self_scale) X
///     Y = drop(activate(Z W^T + X R^T + bias))
///
/// The sum over the edges is a sum or a mean, as of spmm; the term of the target's own features
/// (GIN) and the root weight R (GraphSAGE) are optional and need a square graph. Fused kernels keep
/// a few rows of Z where they are summed and multiply them there: Z is neither written nor read.
namespace tessera::ops {

struct AggregateUpdateOptions : PlanOptions {
  Reduction reduction = Reduction::sum;  ///< or mean
  Precision precision = Precision::fp32;
  std::int64_t in = 0;   ///< width of X
  std::int64_t out = 0;  ///< width of Y
  bool self = false;     ///< Z has the target's own features
  /// Runs bring a number for it, 1 x 1 and stored as X is; else it is 0.
  bool self_scale = false;
  bool root = false;  ///< runs bring a root weight
  bool bias = false;  ///< runs bring a bias
  Activation activation = Activation::none;
  double slope = 0.01;  ///< leaky_relu
  double alpha = 1;     ///< elu
  double dropout = 0;   ///< share of elements of Y set to 0, drawn as spmm's epilogue does
  /// Runs bring memory for Z, which the gradient of the weight needs.
  bool keep_aggregated = false;
  /// As `kernel`, for dX of the backward pass.
  std::string backward_kernel = {};

  friend bool operator==(const AggregateUpdateOptions&, const AggregateUpdateOptions&) = default;
};

using AggregateUpdatePlan = Plan<AggregateUpdateOptions>;

AggregateUpdatePlan plan_aggregate_update(const Graph& graph,
                                          const AggregateUpdateOptions& options);

/// Whether the cost model expects a fused kernel to be faster than stages in one of the passes that
/// the options ask for, on a graph of some size. Nothing is prepared: for layers that have stages
/// of their own.
bool fusing_pays(const Graph& graph, const AggregateUpdateOptions& options);

struct AggregateUpdateInputs {
  ConstOperand x;                 ///< num_cols x in
  ConstOperand weight;            ///< out x in
  ConstOperand root_weight = {};  ///< where the plan has one: out x in
  ConstOperand self_scale = {};   ///< the same: 1 x 1
  ConstOperand bias = {};         ///< the same: 1 x out
  /// What dropout draws from, as in spmm's inputs.
  Random random = Random(0);
  const StepClock* clock = nullptr;
};

struct AggregateUpdateOutputs {
  Operand y;                ///< num_rows x out
  Operand aggregated = {};  ///< where the plan keeps it: Z, num_rows x in
};

/// On a GPU a plan whose kernel is staged multiplies with the memory of `products`, which `gemm`
/// describes.
void run(const AggregateUpdatePlan& plan, const AggregateUpdateInputs& inputs,
         const AggregateUpdateOutputs& outputs, Stream stream = {}, Workspace workspace = {},
         const DenseWorkspace* products = nullptr);

struct AggregateUpdateGradInputs {
  ConstOperand grad_y;            ///< the gradient of what was activated, num_rows x out
  ConstOperand weight = {};       ///< needed for grad_x
  ConstOperand root_weight = {};  ///< the same, where the plan has one
  ConstOperand self_scale = {};   ///< the same
  ConstOperand aggregated = {};   ///< Z of the forward run, needed for grad_weight
  ConstOperand x = {};            ///< needed for grad_root_weight
};

/// Any of them may be absent.
struct AggregateUpdateGradOutputs {
  Operand grad_x = {};            ///< num_cols x in
  Operand grad_weight = {};       ///< out x in
  Operand grad_root_weight = {};  ///< out x in
  Operand grad_bias = {};         ///< 1 x out
};

/// dX = A^T (dY W) + (1 + self_scale) dY W + dY R, by a kernel of its own: A^T gathers rows of dY,
/// and W follows. dW = dY^T Z, dR = dY^T X, and the bias's gradient is the sum over the rows. The
/// plan must have been made with `backward`.
void run_backward(const AggregateUpdatePlan& plan, const AggregateUpdateGradInputs& inputs,
                  const AggregateUpdateGradOutputs& outputs, Stream stream = {},
                  Workspace workspace = {}, const DenseWorkspace* products = nullptr);

}  // namespace tessera::ops
