// SPDX-License-Identifier: Apache-2.0
// A whole layer in one operator: neighbours are summed and multiplied by a matrix, in the order
// that has the narrower sums, and what a vertex has itself, times another matrix, and a bias are
// added.
//
//     Y = B X W^T + R V^T + bias,    B the graph's matrix, or that plus (1 + own_scale) I
#include <tuple>
#include <vector>

#include "operators.hpp"
#include "spmm.hpp"

namespace tessera::torch_ops {
namespace {

/// Bits of `needs`, and the order in which gradients are returned.
enum Needs : std::int64_t {
  need_x = 1,
  need_weight = 2,
  need_root = 4,
  need_root_weight = 8,
  need_bias = 16,
};

void check(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& root_weight,
           const std::optional<Tensor>& own_scale, const SpmmSettings& settings) {
  if (settings.picks()) {
    throw Error(ErrorCode::invalid_argument, "a layer of max or min", "reduce",
                "use sum or mean, or spmm and a product of its own");
  }
  if (x.dim() != 2 || weight.dim() != 2 || weight.size(1) != x.size(1)) {
    throw Error(ErrorCode::invalid_argument, "a matrix that does not fit the features", "weight",
                "use outputs x features");
  }
  if (own_scale && root_weight) {
    throw Error(ErrorCode::invalid_argument,
                "both a scale and a matrix for a vertex's own features", "own_scale",
                "give one of them");
  }
}

std::tuple<Tensor, Tensor> spmm_linear(Tensor x, Tensor weight, std::optional<Tensor> root,
                                       std::optional<Tensor> root_weight,
                                       std::optional<Tensor> bias, std::optional<Tensor> own_scale,
                                       std::optional<Tensor> edge_weight, Tensor index,
                                       std::optional<Tensor> offsets, std::int64_t targets,
                                       std::int64_t sources, std::int64_t layout,
                                       std::int64_t loops, double loop_weight, std::int64_t norm,
                                       std::int64_t reduce, bool sum_first, std::int64_t flags) {
  const DeviceScope scope(x);
  const SpmmSettings settings(loop_weight, norm, reduce, flags);
  check(x, weight, root_weight, own_scale, settings);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Tensor& own = root ? *root : x;
  if (!sum_first) {
    const Tensor moved = product(x, transposed(weight));
    Added added{.bias = bias};
    if (root_weight) added.residual = product(own, transposed(*root_weight));
    if (own_scale) {
      added.residual = moved;
      added.residual_scale = own_scale;
    }
    return {summed(*structure, settings, moved, edge_weight, added),
            empty_beside(x, 0, 0, x.scalar_type())};
  }
  Added added;
  if (own_scale) {
    added.residual = x;
    added.residual_scale = own_scale;
  }
  const Tensor sums = summed(*structure, settings, x, edge_weight, added);
  Tensor y = empty_beside(x, targets, weight.size(0), x.scalar_type());
  if (bias) {
    add_product(y, in_type(*bias, x.scalar_type()), sums, transposed(weight));
  } else {
    multiply(y, sums, transposed(weight));
  }
  if (root_weight) add_product(y, y, own, transposed(*root_weight));
  return {y, sums};
}

std::vector<Tensor> spmm_linear_backward(
    Tensor grad, Tensor x, Tensor weight, std::optional<Tensor> root,
    std::optional<Tensor> root_weight, std::optional<Tensor> own_scale,
    std::optional<Tensor> edge_weight, std::optional<Tensor> sums, Tensor index,
    std::optional<Tensor> offsets, std::int64_t targets, std::int64_t sources, std::int64_t layout,
    std::int64_t loops, double loop_weight, std::int64_t norm, std::int64_t reduce, bool sum_first,
    std::int64_t flags, std::int64_t needs) {
  const DeviceScope scope(grad);
  const SpmmSettings settings(loop_weight, norm, reduce, flags);
  check(x, weight, root_weight, own_scale, settings);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const auto back = [&](const Tensor& gradient) {
    WantedGradients wanted;
    if (own_scale) {
      wanted.residual = gradient;
      wanted.residual_scale = own_scale;
    }
    return *summed_backward(*structure, settings, gradient, edge_weight, wanted).x;
  };
  std::vector<Tensor> gradients;
  std::optional<Tensor> moved;
  if (!sum_first && (needs & (need_x | need_weight)) != 0) moved = back(grad);
  if ((needs & need_x) != 0) {
    Tensor grad_x = sum_first ? back(product(grad, weight)) : product(*moved, weight);
    if (root_weight && !root) add_product(grad_x, grad_x, grad, *root_weight);
    gradients.push_back(grad_x);
  }
  if ((needs & need_weight) != 0) {
    gradients.push_back(sum_first ? product(transposed(grad), *sums)
                                  : product(transposed(*moved), x));
  }
  if ((needs & need_root) != 0) gradients.push_back(product(grad, *root_weight));
  if ((needs & need_root_weight) != 0) {
    gradients.push_back(product(transposed(grad), root ? *root : x));
  }
  if ((needs & need_bias) != 0) {
    const std::array<std::int64_t, 1> rows{0};
    gradients.push_back(torch::stable::sum(grad, rows));
  }
  return gradients;
}

}  // namespace

void register_spmm_linear(torch::stable::detail::StableLibrary& library) {
  library.impl("spmm_linear", TORCH_BOX(&Guarded<&spmm_linear>::run));
  library.impl("spmm_linear_backward", TORCH_BOX(&Guarded<&spmm_linear_backward>::run));
}

}  // namespace tessera::torch_ops
