// SPDX-License-Identifier: Apache-2.0
// A layer (layer.hpp) as an operator.
#include <vector>

#include "layer.hpp"

namespace tessera::torch_ops {
namespace {

std::vector<Tensor> spmm_linear(Tensor x, Tensor weight, std::optional<Tensor> root,
                                std::optional<Tensor> root_weight, std::optional<Tensor> bias,
                                std::optional<Tensor> own_scale, std::optional<Tensor> edge_weight,
                                Tensor index, std::optional<Tensor> offsets, std::int64_t targets,
                                std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                double loop_weight, std::int64_t norm, std::int64_t reduce,
                                bool sum_first, std::int64_t flags) {
  const DeviceScope scope(x);
  const Layer layer(x, weight, root, root_weight, own_scale, edge_weight,
                    {index, offsets, targets, sources, layout, loops},
                    {loop_weight, norm, reduce, flags & plan_flags}, sum_first, flags);
  Copies copies;
  return layer.forward(bias, false, copies);
}

/// `kept` is what forward returned behind the results. Gradients have the types of what they are
/// the gradients of; those of matrices that were joined come as one, one above the other.
std::vector<Tensor> spmm_linear_backward(
    Tensor grad, Tensor x, Tensor weight, std::optional<Tensor> root,
    std::optional<Tensor> root_weight, std::optional<Tensor> own_scale,
    std::optional<Tensor> edge_weight, std::vector<Tensor> kept, Tensor index,
    std::optional<Tensor> offsets, std::int64_t targets, std::int64_t sources, std::int64_t layout,
    std::int64_t loops, double loop_weight, std::int64_t norm, std::int64_t reduce, bool sum_first,
    std::int64_t flags, std::int64_t needs) {
  const DeviceScope scope(grad);
  const Layer layer(x, weight, root, root_weight, own_scale, edge_weight,
                    {index, offsets, targets, sources, layout, loops},
                    {loop_weight, norm, reduce, flags & plan_flags}, sum_first, flags);
  std::vector<Tensor> gradients;
  layer.backward(grad, kept.begin(), needs, gradients);
  return gradients;
}

}  // namespace

void register_spmm_linear(torch::stable::detail::StableLibrary& library) {
  implement(library, "spmm_linear", TORCH_BOX(&Guarded<&spmm_linear>::run));
  implement(library, "spmm_linear_backward", TORCH_BOX(&Guarded<&spmm_linear_backward>::run));
}

}  // namespace tessera::torch_ops
