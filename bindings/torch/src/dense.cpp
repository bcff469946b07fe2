// SPDX-License-Identifier: Apache-2.0
#include "dense.hpp"

namespace tessera::torch_ops {

LinearGradients Dense::linear_gradients(const Tensor& x, const Tensor& matrix, Tensor grad,
                                        ScalarType parameters, const WantedLinear& wanted) const {
  grad = with_rows(grad);
  if (parameters == x.scalar_type()) {
    if (const auto all = gradients_in_one(x, matrix, grad, wanted)) return *all;
  }
  LinearGradients found;
  if (wanted.weight) found.weight = product_in(transposed(grad), x, parameters);
  if (wanted.bias) found.bias = sum_of_rows(grad, parameters);
  if (wanted.x) found.x = product(grad, matrix);
  if (wanted.before_relu) {
    found.x_sums =
        clear_where_zero(*found.x, x, wanted.x_sums ? std::optional(parameters) : std::nullopt);
  } else if (wanted.x_sums) {
    found.x_sums = sum_of_rows(*found.x, parameters);
  }
  return found;
}

}  // namespace tessera::torch_ops
