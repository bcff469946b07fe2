// SPDX-License-Identifier: Apache-2.0
// GIN's layer with its network in one operator:
//
//     Y = relu((B + (1 + own_scale) I) X W^T + bias) V^T + then_bias
#include <vector>

#include "layer.hpp"

namespace tessera::torch_ops {
namespace {

/// GIN with the usual network of two layers: relu of a layer with `own_scale`, times another
/// matrix. Returns the results, those of the hidden layer, the second matrix where it was cast, and
/// what the first layer keeps.
std::vector<Tensor> gin(Tensor x, Tensor weight, std::optional<Tensor> bias, Tensor then_weight,
                        std::optional<Tensor> then_bias, Tensor own_scale, Tensor index,
                        std::optional<Tensor> offsets, std::int64_t targets, std::int64_t sources,
                        std::int64_t layout, std::int64_t loops, std::int64_t reduce,
                        bool sum_first, std::int64_t flags) {
  const DeviceScope scope(x);
  const Layer layer(x, weight, {}, {}, own_scale, {},
                    {index, offsets, targets, sources, layout, loops},
                    {1, 0, reduce, flags & plan_flags}, sum_first, flags);
  check_matrix(weight.size(0), x, then_weight, layer.cast, "then_weight");
  check_vector(then_weight.size(0), x, then_bias, layer.cast, "then_bias");
  Copies copies;
  const Tensor matrix = copies.in_type(then_weight, layer.type);
  const std::optional<Tensor> added = copies.in_type(then_bias, layer.type);
  std::vector<Tensor> first = layer.forward(bias, true, copies);
  Tensor y = empty_beside(x, targets, then_weight.size(0), layer.type);
  layer.dense.multiply(y, added, first[0], transposed(matrix));
  std::vector<Tensor> results{y, first[0]};
  if (then_weight.scalar_type() != layer.type) results.push_back(matrix);
  results.insert(results.end(), first.begin() + 1, first.end());
  return results;
}

/// Bits of `needs` in gin_backward, and the order in which gradients are returned.
enum GinNeeds : std::int64_t {
  need_then_weight = 1,
  need_then_bias = 2,
  need_first_x = 4,
  need_first_weight = 8,
  need_first_bias = 16,
};

std::vector<Tensor> gin_backward(Tensor grad, Tensor x, Tensor weight, Tensor then_weight,
                                 Tensor own_scale, std::vector<Tensor> kept, Tensor index,
                                 std::optional<Tensor> offsets, std::int64_t targets,
                                 std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                 std::int64_t reduce, bool sum_first, std::int64_t flags,
                                 std::int64_t needs) {
  const DeviceScope scope(grad);
  const Layer layer(x, weight, {}, {}, own_scale, {},
                    {index, offsets, targets, sources, layout, loops},
                    {1, 0, reduce, flags & plan_flags}, sum_first, flags);
  grad = in_type(grad, layer.type);
  const ScalarType parameters = then_weight.scalar_type();
  auto next = kept.cbegin();
  const Tensor hidden = *next++;
  const Tensor matrix = parameters != layer.type ? *next++ : then_weight;
  std::int64_t of_first = 0;
  if ((needs & need_first_x) != 0) of_first |= need_x;
  if ((needs & need_first_weight) != 0) of_first |= need_weight;
  const bool needs_first_bias = (needs & need_first_bias) != 0;
  const LinearGradients then =
      layer.dense.linear_gradients(hidden, matrix, grad, parameters,
                                   {.weight = (needs & need_then_weight) != 0,
                                    .bias = (needs & need_then_bias) != 0,
                                    .x = of_first != 0 || needs_first_bias,
                                    .before_relu = of_first != 0 || needs_first_bias,
                                    .x_sums = needs_first_bias});
  std::vector<Tensor> gradients;
  if (then.weight) gradients.push_back(*then.weight);
  if (then.bias) gradients.push_back(*then.bias);
  if (of_first != 0) layer.backward(*then.x, next, of_first, gradients);
  if (then.x_sums) gradients.push_back(*then.x_sums);
  return gradients;
}

}  // namespace

void register_gin(torch::stable::detail::StableLibrary& library) {
  implement(library, "gin", TORCH_BOX(&Guarded<&gin>::run));
  implement(library, "gin_backward", TORCH_BOX(&Guarded<&gin_backward>::run));
}

}  // namespace tessera::torch_ops
