// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense/dense_ops.hpp"
#include "tessera/core/error.hpp"

/// Dense layers as products, for devices that have nothing better.
namespace tessera::ops {

inline GemmCall product_of(const LinearCall& call) {
  GemmCall product{Transpose::no, Transpose::yes,   1,        call.x, call.weight, 0, call.y,
                   call.x.cols,   call.allows_tf32, call.bias};
  product.of_a = call.of_x;
  product.moments = call.moments;
  product.relu = call.relu;
  return product;
}

/// Gradients one after another, by `run(call)`.
template <class Run>
void run_one_by_one(const LinearGradCall& call, Run&& run) {
  const auto& [x, weight, grad_y, grad_weight, grad_bias, grad_x, allows_tf32, of_x, before_relu,
               grad_x_sums, normed, norm_sums] = call;
  if (!normed.absent()) throw Error(ErrorCode::internal, "no kernel takes it", "normed gradient");
  if (!norm_sums.absent()) throw Error(ErrorCode::internal, "no kernel finds them", "norm_sums");
  if (!grad_weight.absent()) {
    GemmCall product{Transpose::yes, Transpose::no, 1,          grad_y, x, 0,
                     grad_weight,    x.rows,        allows_tf32};
    product.of_b = of_x;
    run(product);
  }
  if (!grad_bias.absent()) run(ActivationGradCall{grad_y, {}, {}, grad_y, {}, grad_bias});
  if (!grad_x.absent()) {
    run(GemmCall{Transpose::no, Transpose::no, 1, grad_y, weight, 0, grad_x, grad_y.cols,
                 allows_tf32});
  }
  if (before_relu || !grad_x_sums.absent()) {
    ActivationFormula formula;
    if (before_relu) formula.activation = Activation::relu;
    run(ActivationGradCall{x, {}, formula, grad_x, before_relu ? grad_x : Operand(), grad_x_sums});
  }
}

}  // namespace tessera::ops
