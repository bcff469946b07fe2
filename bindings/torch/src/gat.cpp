// SPDX-License-Identifier: Apache-2.0
// GAT's layer in one operator, for a graph whose targets are its sources:
//
//     H = X W^T,  O[i] = sum over j of softmax_j(leaky_relu(a_t . H[i] + a_s . H[j])) H[j],  Y = O
//     + bias
//
// with each head on its own. Both scores of all heads are one product of H with a matrix that has
// the vectors of the heads in its blocks.
#include <array>
#include <vector>

#include "attention.hpp"
#include "copies.hpp"
#include "dense.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

/// Bits of `needs`, and the order in which gradients are returned.
enum Needs : std::int64_t {
  need_x = 1,
  need_weight = 2,
  need_source = 4,
  need_target = 8,
  need_bias = 16,
};

/// Of a matrix of 2 heads x (heads * w), the blocks of one half that belong to one head both ways.
Tensor head_blocks(const Tensor& matrix, std::int64_t half, std::int64_t heads) {
  const std::int64_t columns = matrix.size(1);
  const std::int64_t width = columns / heads;
  return view_of(matrix, {heads, width}, {columns + width, 1}, half * heads * columns);
}

/// Multiplied from the left, both scores of every head: sources in the first half. Made with the
/// other copies.
Tensor score_matrix(const Tensor& source, const Tensor& target, std::int64_t heads, ScalarType type,
                    Copies& copies) {
  const std::int64_t width = source.numel() / heads;
  const Tensor matrix = empty_beside(source, 2 * heads, source.numel(), type);
  std::int64_t half = 0;
  for (const Tensor* vectors : {&source, &target}) {
    copies.add_diagonal(rows_of(matrix, heads * half++, heads), as_row(*vectors), width);
  }
  return matrix;
}

/// Half of the columns of all scores.
Tensor scores_of(const Tensor& scores, std::int64_t half, std::int64_t heads) {
  return view_of(scores, {scores.size(0), heads}, {2 * heads, 1}, half * heads);
}

AttentionSettings settings_of(std::int64_t heads, double slope, double dropout,
                              std::int64_t flags) {
  return {ops::AttentionForm::gat, heads, 1, slope, dropout, flags & plan_flags};
}

void check(const Tensor& x, const Tensor& weight, const Tensor& source, const Tensor& target,
           const std::optional<Tensor>& bias, std::int64_t heads, std::int64_t vertices,
           bool cast) {
  check_matrix(x, weight, cast);
  check_rows(x, vertices);
  const std::int64_t outputs = weight.size(0);
  if (heads < 1 || outputs % heads != 0 || source.numel() != outputs || target.numel() != outputs) {
    throw Error(ErrorCode::invalid_argument, "vectors that do not fit the outputs of the matrix",
                "att_src", "use one number for each output");
  }
  check_device(x, source, "att_src");
  check_device(x, target, "att_dst");
  if (!cast) check_one_type(x, {source, target}, "features, att_src and att_dst");
  check_vector(outputs, x, bias, cast, "bias");
}

/// The results, then what the backward pass takes: the sums where results are those plus a bias or
/// in another type, features times the matrix, scores, logarithms, the matrix of scores, features
/// and the matrix where they were cast, and, if `flags` ask for it and the plan has any, other
/// sums.
std::vector<Tensor> gat(Tensor x, Tensor weight, Tensor att_src, Tensor att_dst,
                        std::optional<Tensor> bias, std::optional<Tensor> seed, Tensor index,
                        std::optional<Tensor> offsets, std::int64_t targets, std::int64_t sources,
                        std::int64_t layout, std::int64_t loops, std::int64_t heads, double slope,
                        double dropout, std::int64_t flags) {
  const DeviceScope scope(x);
  check(x, weight, att_src, att_dst, bias, heads, sources, is_cast(flags));
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const ScalarType type = layer_type(x, flags);
  Copies copies;
  const Tensor features = copies.in_type(x, type);
  const Tensor cast_weight = copies.in_type(weight, type);
  const ScalarType returned = result_type(x, flags);
  bias = copies.in_type(bias, returned);
  const Tensor matrix = score_matrix(att_src, att_dst, heads, type, copies);
  copies.make();
  const Dense dense(x, flags);
  const Tensor moved = dense.product(features, transposed(cast_weight));
  const Tensor scores = dense.product(moved, transposed(matrix));
  const AttentionTensors tensors(scores_of(scores, 1, heads), scores_of(scores, 0, heads), moved,
                                 std::nullopt, seed);
  const ScalarType run_type = tensors.value.scalar_type();
  Tensor summed = empty_beside(x, targets, moved.size(1), run_type);
  Tensor log_sum = empty_beside(x, targets, heads, sum_type(tensors.value));
  std::optional<Tensor> kept_sums;
  const bool keeps = (flags & keep_sums) != 0 && !x.is_cpu();  // no kernel of the CPU does
  attend(*structure, settings_of(heads, slope, dropout, flags), tensors, summed, log_sum,
         keeps ? &kept_sums : nullptr);
  summed = in_type(summed, type);
  Tensor result = in_type(summed, returned);
  if (bias) result = dense.with_bias(result, *bias);
  std::vector<Tensor> results{result};
  if (bias || returned != type) results.push_back(summed);
  results.insert(results.end(), {moved, scores, log_sum, matrix});
  if (x.scalar_type() != type) results.push_back(features);
  if (weight.scalar_type() != type) results.push_back(cast_weight);
  if (kept_sums) results.push_back(*kept_sums);
  return results;
}

/// `kept` is what forward returned from the product of the features on. Gradients of parameters
/// have the type of the matrix.
std::vector<Tensor> gat_backward(Tensor grad, Tensor x, Tensor weight, std::optional<Tensor> seed,
                                 Tensor output, std::vector<Tensor> kept, Tensor index,
                                 std::optional<Tensor> offsets, std::int64_t targets,
                                 std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                 std::int64_t heads, double slope, double dropout,
                                 std::int64_t flags, std::int64_t needs) {
  const DeviceScope scope(x);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const ScalarType type = layer_type(x, flags);
  const ScalarType parameters = weight.scalar_type();
  const Tensor &moved = kept[0], &scores = kept[1], &log_sum = kept[2], &matrix = kept[3];
  auto next = kept.begin() + 4;
  const Tensor features = x.scalar_type() != type ? *next++ : x;
  const Tensor cast_weight = parameters != type ? *next++ : weight;
  const auto kept_sums = next != kept.end() ? std::optional(*next) : std::nullopt;
  const AttentionTensors tensors(scores_of(scores, 1, heads), scores_of(scores, 0, heads), moved,
                                 std::nullopt, seed);
  const ScalarType run_type = tensors.value.scalar_type();
  Tensor grad_scores = empty_beside(x, sources, 2 * heads, run_type);
  AttentionGradients found{scores_of(grad_scores, 1, heads), scores_of(grad_scores, 0, heads),
                           empty_beside(x, sources, moved.size(1), run_type)};
  attend_backward(*structure, settings_of(heads, slope, dropout, flags), tensors, output, log_sum,
                  grad, found, kept_sums);
  Tensor grad_moved = in_type(found.value, type);
  grad_scores = in_type(grad_scores, type);
  std::vector<Tensor> gradients;
  const Dense dense(x, flags);
  const WantedLinear wanted{.weight = (needs & need_weight) != 0, .x = (needs & need_x) != 0};
  if (wanted.weight || wanted.x) {
    dense.add_product(grad_moved, grad_moved, grad_scores, matrix);
    const LinearGradients of_product =
        dense.linear_gradients(features, cast_weight, grad_moved, parameters, wanted);
    if (wanted.x) gradients.push_back(in_type(*of_product.x, x.scalar_type()));
    if (wanted.weight) gradients.push_back(*of_product.weight);
  }
  if ((needs & (need_source | need_target)) != 0) {
    const Tensor grad_matrix = dense.product_in(transposed(grad_scores), moved, parameters);
    Copies copies;
    for (const std::int64_t half : {0, 1}) {
      if ((needs & (half == 0 ? need_source : need_target)) == 0) continue;
      const Tensor vectors = empty_beside(x, heads, moved.size(1) / heads, parameters);
      copies.add(vectors, head_blocks(grad_matrix, half, heads));
      gradients.push_back(vectors);
    }
    copies.make();
  }
  if ((needs & need_bias) != 0) gradients.push_back(dense.sum_of_rows(grad, parameters));
  return gradients;
}

}  // namespace

void register_gat(torch::stable::detail::StableLibrary& library) {
  implement(library, "gat", TORCH_BOX(&Guarded<&gat>::run));
  implement(library, "gat_backward", TORCH_BOX(&Guarded<&gat_backward>::run));
}

}  // namespace tessera::torch_ops
