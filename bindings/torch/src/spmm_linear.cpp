// SPDX-License-Identifier: Apache-2.0
// A whole layer in one operator: neighbours are summed and multiplied by a matrix, in the order
// that has the narrower sums, and what a vertex has itself, times another matrix, and a bias are
// added.
//
//     Y = B X W^T + R V^T + bias,    B the graph's matrix, or that plus (1 + own_scale) I
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

/// What a layer multiplies, in the type that it runs in. Features that are multiplied by both
/// matrices are multiplied once, by one above the other.
struct Factors {
  bool joined;
  bool cast_features;
  bool own_matrix;  ///< the matrix is none of the caller's

  Factors(const Tensor& x, const Tensor& weight, bool has_root, bool has_root_weight,
          bool sum_first, ScalarType type)
      : joined(!sum_first && has_root_weight && !has_root),
        cast_features(x.scalar_type() != type),
        own_matrix(joined || weight.scalar_type() != type) {}
};

/// The results, then what the backward pass takes: sums that went first, features and matrices that
/// are none of the caller's.
std::vector<Tensor> spmm_linear(Tensor x, Tensor weight, std::optional<Tensor> root,
                                std::optional<Tensor> root_weight, std::optional<Tensor> bias,
                                std::optional<Tensor> own_scale, std::optional<Tensor> edge_weight,
                                Tensor index, std::optional<Tensor> offsets, std::int64_t targets,
                                std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                double loop_weight, std::int64_t norm, std::int64_t reduce,
                                bool sum_first, std::int64_t flags) {
  const DeviceScope scope(x);
  const SpmmSettings settings(loop_weight, norm, reduce, flags & plan_flags);
  check(x, weight, root_weight, own_scale, settings);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const ScalarType type = layer_type(x, flags);
  const Factors factors(x, weight, root.has_value(), root_weight.has_value(), sum_first, type);
  const std::int64_t outputs = weight.size(0);

  Copies copies;
  const Tensor features = copies.in_type(x, type);
  Tensor matrix = weight;
  if (factors.joined) {
    matrix = empty_beside(x, 2 * outputs, weight.size(1), type);
    copies.add(rows_of(matrix, 0, outputs), weight);
    copies.add(rows_of(matrix, outputs, outputs), *root_weight);
  } else {
    matrix = copies.in_type(weight, type);
    root_weight = copies.in_type(root_weight, type);
  }
  root = copies.in_type(root, type);
  bias = copies.in_type(bias, type);
  own_scale = copies.in_type(own_scale, type);
  copies.make();

  std::vector<Tensor> results;
  if (sum_first) {
    Added added;
    if (own_scale) added = {.residual = features, .residual_scale = own_scale};
    const Tensor sums = summed(*structure, settings, features, edge_weight, added);
    Tensor y = empty_beside(x, targets, outputs, type);
    if (bias) {
      add_product(y, *bias, sums, transposed(matrix));
    } else {
      multiply(y, sums, transposed(matrix));
    }
    if (root_weight) add_product(y, y, root ? *root : features, transposed(*root_weight));
    results = {y, sums};
  } else {
    const Tensor moved = product(features, transposed(matrix));
    Added added{.bias = bias};
    if (factors.joined) {
      added.residual = columns_of(moved, outputs, outputs);
    } else if (root_weight) {
      added.residual = product(*root, transposed(*root_weight));
    } else if (own_scale) {
      added.residual = moved;
      added.residual_scale = own_scale;
    }
    const Tensor summands = factors.joined ? columns_of(moved, 0, outputs) : moved;
    results = {summed(*structure, settings, summands, edge_weight, added)};
  }
  if (factors.cast_features) results.push_back(features);
  if (factors.own_matrix) results.push_back(matrix);
  return results;
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
  const SpmmSettings settings(loop_weight, norm, reduce, flags & plan_flags);
  check(x, weight, root_weight, own_scale, settings);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const ScalarType type = layer_type(x, flags);
  const Factors factors(x, weight, root.has_value(), root_weight.has_value(), sum_first, type);
  auto next = kept.begin();
  const std::optional<Tensor> sums = sum_first ? std::optional(*next++) : std::nullopt;
  const Tensor features = factors.cast_features ? *next++ : x;
  const Tensor matrix = factors.own_matrix ? *next++ : weight;
  const std::int64_t outputs = weight.size(0);
  const bool needs_bias = (needs & need_bias) != 0;
  const ScalarType parameters = weight.scalar_type();
  grad = in_type(grad, type);

  const auto back = [&](const Tensor& gradient, std::optional<Tensor> into = {}) {
    WantedGradients wanted{.into = into};
    if (own_scale) {
      wanted.residual = gradient;
      wanted.residual_scale = own_scale;
    }
    return *summed_backward(*structure, settings, gradient, edge_weight, wanted).x;
  };
  std::vector<Tensor> gradients;
  if (factors.joined) {
    // The gradients of both products side by side: what follows is again one product each.
    const Tensor pair = empty_beside(grad, sources, 2 * outputs, type);
    back(grad, columns_of(pair, 0, outputs));
    copy(columns_of(pair, outputs, outputs), grad);
    if ((needs & need_x) != 0) gradients.push_back(in_type(product(pair, matrix), x.scalar_type()));
    if ((needs & (need_weight | need_root_weight)) != 0) {
      gradients.push_back(product_in(transposed(pair), features, parameters));
    }
    if (needs_bias) gradients.push_back(sum_of_rows(grad, parameters));
    return gradients;
  }
  std::optional<Tensor> moved;
  if (!sum_first && (needs & (need_x | need_weight)) != 0) moved = back(grad);
  if (root_weight) root_weight = in_type(*root_weight, type);
  if ((needs & need_x) != 0) {
    Tensor grad_x = sum_first ? back(product(grad, matrix)) : product(*moved, matrix);
    if (root_weight && !root) add_product(grad_x, grad_x, grad, *root_weight);
    gradients.push_back(in_type(grad_x, x.scalar_type()));
  }
  if ((needs & need_weight) != 0) {
    gradients.push_back(sum_first ? product_in(transposed(grad), *sums, parameters)
                                  : product_in(transposed(*moved), features, parameters));
  }
  if ((needs & need_root) != 0) {
    gradients.push_back(in_type(product(grad, *root_weight), root->scalar_type()));
  }
  if ((needs & need_root_weight) != 0) {
    const Tensor own = root ? in_type(*root, type) : features;
    gradients.push_back(product_in(transposed(grad), own, parameters));
  }
  if (needs_bias) gradients.push_back(sum_of_rows(grad, parameters));
  return gradients;
}

}  // namespace

void register_spmm_linear(torch::stable::detail::StableLibrary& library) {
  implement(library, "spmm_linear", TORCH_BOX(&Guarded<&spmm_linear>::run));
  implement(library, "spmm_linear_backward", TORCH_BOX(&Guarded<&spmm_linear_backward>::run));
}

}  // namespace tessera::torch_ops
