// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

namespace tessera::torch_ops {

void Layer::check() const {
  if (settings.picks()) {
    throw Error(ErrorCode::invalid_argument, "a layer of max or min", "reduce",
                "use sum or mean, or spmm and a product of its own");
  }
  check_matrix(x, weight, cast);
  if (own_scale && root_weight) {
    throw Error(ErrorCode::invalid_argument,
                "both a scale and a matrix for a vertex's own features", "own_scale",
                "give one of them");
  }
  if (own_scale) check_device(x, *own_scale, "own_scale");
  if (!root_weight) return;
  const Tensor& own = root ? *root : x;
  check_device(x, own, "root");
  check_matrix(own, *root_weight, cast, "root_weight");
  check_rows(own, structure->targets(), root ? "root" : "x");
  if (!cast && root_weight->scalar_type() != x.scalar_type()) {
    throw Error(ErrorCode::invalid_argument, "features and weights of different types", "dtype",
                "give x, root and both matrices one type");
  }
  if (root_weight->size(0) != weight.size(0)) {
    throw Error(ErrorCode::invalid_argument,
                "a matrix of " + std::to_string(root_weight->size(0)) + " outputs beside one of " +
                    std::to_string(weight.size(0)),
                "root_weight", "give both as many");
  }
}

std::vector<Tensor> Layer::forward(std::optional<Tensor> bias, bool relu, Copies& copies) const {
  const std::int64_t outputs = weight.size(0);
  check_vector(outputs, x, bias, cast, "bias");
  const Tensor features = copies.in_type(x, type);
  Tensor matrix = weight;
  std::optional<Tensor> own_matrix = root_weight;
  if (factors.joined) {
    matrix = copies.stacked(weight, *root_weight, type);
  } else {
    matrix = copies.in_type(weight, type);
    own_matrix = copies.in_type(root_weight, type);
  }
  const std::optional<Tensor> own = copies.in_type(root, type);
  const std::optional<Tensor> scale = copies.in_type(own_scale, type);
  bias = copies.in_type(bias, type);
  copies.make();

  std::vector<Tensor> results;
  if (sum_first) {
    Added added;
    if (scale) added = {.residual = features, .residual_scale = scale};
    const Tensor sums = summed(*structure, settings, features, edge_weight, added);
    Tensor y = empty_beside(x, structure->targets(), outputs, type);
    dense.multiply(y, bias, sums, transposed(matrix));
    if (own_matrix) dense.add_product(y, y, own ? *own : features, transposed(*own_matrix));
    if (relu) y = call<Tensor>("aten::relu_", "", y);
    results = {y, sums};
  } else {
    const Tensor moved = dense.product(features, transposed(matrix));
    Added added{.bias = bias, .relu = relu, .results = returned};
    if (factors.joined) {
      added.residual = columns_of(moved, outputs, outputs);
    } else if (own_matrix) {
      added.residual = dense.product(*own, transposed(*own_matrix));
    } else if (scale) {
      added.residual = moved;
      added.residual_scale = scale;
    }
    const Tensor summands = factors.joined ? columns_of(moved, 0, outputs) : moved;
    results = {summed(*structure, settings, summands, edge_weight, added)};
  }
  if (factors.cast_features) results.push_back(features);
  if (factors.own_matrix) results.push_back(matrix);
  results[0] = in_type(results[0], returned);
  return results;
}

void Layer::backward(Tensor grad, std::vector<Tensor>::const_iterator kept, std::int64_t needs,
                     std::vector<Tensor>& gradients) const {
  const std::optional<Tensor> sums = sum_first ? std::optional(*kept++) : std::nullopt;
  const Tensor features = factors.cast_features ? *kept++ : x;
  const Tensor matrix = factors.own_matrix ? *kept++ : weight;
  const std::int64_t outputs = weight.size(0);
  const std::int64_t sources = structure->sources();
  const bool needs_bias = (needs & need_bias) != 0;
  const ScalarType parameters = weight.scalar_type();
  const Tensor given = grad;
  grad = in_type(grad, type);

  const auto back = [&](const Tensor& gradient, std::optional<Tensor> into = {}) {
    WantedGradients wanted{.into = into};
    if (own_scale) {
      wanted.residual = gradient;
      wanted.residual_scale = own_scale;
    }
    return *summed_backward(*structure, settings, gradient, edge_weight, wanted).x;
  };
  if (factors.joined) {
    // The gradients of both products side by side: what follows is again one product each.
    const Tensor pair = empty_beside(grad, sources, 2 * outputs, type);
    back(grad, columns_of(pair, 0, outputs));
    make_all({{columns_of(pair, outputs, outputs), grad}});
    const LinearGradients found = dense.linear_gradients(
        features, matrix, pair, parameters,
        {.weight = (needs & (need_weight | need_root_weight)) != 0, .x = (needs & need_x) != 0});
    if (found.x) gradients.push_back(in_type(*found.x, x.scalar_type()));
    if (found.weight) gradients.push_back(*found.weight);
    if (needs_bias) gradients.push_back(dense.sum_of_rows(given, parameters));
    return;
  }
  const std::optional<Tensor> own_matrix =
      root_weight ? std::optional(in_type(*root_weight, type)) : std::nullopt;
  WantedLinear wanted{.weight = (needs & need_weight) != 0, .x = (needs & need_x) != 0};
  LinearGradients found;
  if (sum_first) {
    wanted.bias = needs_bias && returned == type;
    found = dense.linear_gradients(*sums, matrix, grad, parameters, wanted);
    if (found.x) found.x = back(*found.x);
  } else {
    if (wanted.x || wanted.weight) {
      found = dense.linear_gradients(features, matrix, back(grad), parameters, wanted);
    }
  }
  if (needs_bias && !found.bias) found.bias = dense.sum_of_rows(given, parameters);
  if (found.x) {
    if (own_matrix && !root) dense.add_product(*found.x, *found.x, grad, *own_matrix);
    gradients.push_back(in_type(*found.x, x.scalar_type()));
  }
  if (found.weight) gradients.push_back(*found.weight);
  if ((needs & need_root) != 0) {
    gradients.push_back(in_type(dense.product(grad, *own_matrix), root->scalar_type()));
  }
  if ((needs & need_root_weight) != 0) {
    const Tensor own = root ? in_type(*root, type) : features;
    gradients.push_back(dense.product_in(transposed(grad), own, parameters));
  }
  if (found.bias) gradients.push_back(*found.bias);
}

}  // namespace tessera::torch_ops
