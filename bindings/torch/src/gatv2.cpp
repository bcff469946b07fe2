// SPDX-License-Identifier: Apache-2.0
// GATv2's layer in one operator, for a graph whose targets are its sources:
//
//     S = X W_s^T + b_s,  T = X W_t^T + b_t
//     O[i] = sum over j of softmax_j(a . leaky_relu(T[i] + S[j])) S[j],  Y = O + bias
//
// with each head on its own. Features are multiplied by both matrices at once, one above the other.
#include <vector>

#include "attention.hpp"
#include "copies.hpp"
#include "dense.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

/// Bits of `needs`, and the order in which gradients are returned: those of both matrices as one,
/// and so those of their biases.
enum Needs : std::int64_t {
  need_x = 1,
  need_weights = 2,
  need_biases = 4,
  need_vector = 8,
  need_bias = 16,
};

AttentionSettings settings_of(std::int64_t heads, double slope, double dropout,
                              std::int64_t flags) {
  return {ops::AttentionForm::gatv2, heads, 1, slope, dropout, flags & plan_flags};
}

/// Sources stand in the first half of the columns.
AttentionTensors tensors_of(const Tensor& moved, const Tensor& vector,
                            const std::optional<Tensor>& seed) {
  const std::int64_t outputs = moved.size(1) / 2;
  const Tensor source = columns_of(moved, 0, outputs);
  return {columns_of(moved, outputs, outputs), source, source, vector, seed};
}

void check(const Tensor& x, const Tensor& source_weight, const std::optional<Tensor>& source_bias,
           const Tensor& target_weight, const std::optional<Tensor>& target_bias,
           const Tensor& vector, const std::optional<Tensor>& bias, std::int64_t heads,
           std::int64_t vertices, bool cast) {
  check_matrix(x, source_weight, cast, "source_weight");
  check_matrix(x, target_weight, cast, "target_weight");
  check_rows(x, vertices);
  const std::int64_t outputs = source_weight.size(0);
  if (target_weight.size(0) != outputs || source_bias.has_value() != target_bias.has_value()) {
    throw Error(ErrorCode::invalid_argument, "two matrices that are not alike", "target_weight",
                "give both as many outputs, and both a bias or none");
  }
  check_vector(outputs, x, source_bias, cast, "source_bias");
  check_vector(outputs, x, target_bias, cast, "target_bias");
  check_vector(outputs, x, bias, cast, "bias");
  if (heads < 1 || outputs % heads != 0 || vector.numel() != outputs) {
    throw Error(ErrorCode::invalid_argument, "vectors that do not fit the outputs of the matrices",
                "att", "use one number for each output");
  }
  check_device(x, vector, "att");
  if (!cast) check_one_type(x, {vector}, "features and att");
}

/// The results, then what the backward pass takes: the sums where results are those plus a bias or
/// in another type, features times both matrices, logarithms, the matrices, and vector and features
/// where they were cast.
std::vector<Tensor> gatv2(Tensor x, Tensor source_weight, std::optional<Tensor> source_bias,
                          Tensor target_weight, std::optional<Tensor> target_bias, Tensor att,
                          std::optional<Tensor> bias, std::optional<Tensor> seed, Tensor index,
                          std::optional<Tensor> offsets, std::int64_t targets, std::int64_t sources,
                          std::int64_t layout, std::int64_t loops, std::int64_t heads, double slope,
                          double dropout, std::int64_t flags) {
  const DeviceScope scope(x);
  check(x, source_weight, source_bias, target_weight, target_bias, att, bias, heads, sources,
        is_cast(flags));
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const ScalarType type = layer_type(x, flags);
  const std::int64_t outputs = source_weight.size(0);
  Copies copies;
  const Tensor features = copies.in_type(x, type);
  const Tensor matrix = copies.stacked(source_weight, target_weight, type);
  std::optional<Tensor> biases;
  if (source_bias) {
    const Tensor row = copies.stacked(as_row(*source_bias), as_row(*target_bias), type);
    biases = torch::stable::flatten(row, 0, 1);
  }
  const Tensor vector = copies.in_type(as_row(att), type);
  const ScalarType returned = result_type(x, flags);
  bias = copies.in_type(bias, returned);
  copies.make();
  Tensor moved = empty_beside(x, sources, 2 * outputs, type);
  const Dense dense(x, flags);
  dense.multiply(moved, biases, features, transposed(matrix));
  const AttentionTensors tensors = tensors_of(moved, vector, seed);
  Tensor summed = empty_beside(x, targets, outputs, tensors.value.scalar_type());
  Tensor log_sum = empty_beside(x, targets, heads, sum_type(tensors.value));
  attend(*structure, settings_of(heads, slope, dropout, flags), tensors, summed, log_sum);
  summed = in_type(summed, type);
  Tensor result = in_type(summed, returned);
  if (bias) result = dense.with_bias(result, *bias);
  std::vector<Tensor> results{result};
  if (bias || returned != type) results.push_back(summed);
  results.insert(results.end(), {moved, log_sum, matrix});
  if (att.scalar_type() != type) results.push_back(vector);
  if (x.scalar_type() != type) results.push_back(features);
  return results;
}

/// `kept` is what forward returned from the products of the features on. Gradients of parameters
/// have the type of the matrices.
std::vector<Tensor> gatv2_backward(Tensor grad, Tensor x, Tensor source_weight, Tensor att,
                                   std::optional<Tensor> seed, Tensor output,
                                   std::vector<Tensor> kept, Tensor index,
                                   std::optional<Tensor> offsets, std::int64_t targets,
                                   std::int64_t sources, std::int64_t layout, std::int64_t loops,
                                   std::int64_t heads, double slope, double dropout,
                                   std::int64_t flags, std::int64_t needs) {
  const DeviceScope scope(x);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const ScalarType type = layer_type(x, flags);
  const ScalarType parameters = source_weight.scalar_type();
  const Tensor &moved = kept[0], &log_sum = kept[1], &matrix = kept[2];
  auto next = kept.begin() + 3;
  const Tensor vector = att.scalar_type() != type ? *next++ : as_row(att);
  const Tensor features = x.scalar_type() != type ? *next++ : x;
  const AttentionTensors tensors = tensors_of(moved, vector, seed);
  const ScalarType run_type = tensors.value.scalar_type();
  const std::int64_t outputs = source_weight.size(0);
  Tensor grad_moved = empty_beside(x, sources, 2 * outputs, run_type);
  const Tensor grad_source = columns_of(grad_moved, 0, outputs);
  AttentionGradients found{columns_of(grad_moved, outputs, outputs), grad_source,
                           empty_beside(x, sources, outputs, run_type),
                           empty_beside(x, outputs, run_type)};
  attend_backward(*structure, settings_of(heads, slope, dropout, flags), tensors, output, log_sum,
                  grad, found);
  const Dense dense(x, flags);
  dense.add_into(grad_source, found.value);
  grad_moved = in_type(grad_moved, type);
  const LinearGradients of_products =
      dense.linear_gradients(features, matrix, grad_moved, parameters,
                             {.weight = (needs & need_weights) != 0,
                              .bias = (needs & need_biases) != 0,
                              .x = (needs & need_x) != 0});
  std::vector<Tensor> gradients;
  if (of_products.x) gradients.push_back(in_type(*of_products.x, x.scalar_type()));
  if (of_products.weight) gradients.push_back(*of_products.weight);
  if (of_products.bias) gradients.push_back(*of_products.bias);
  if ((needs & need_vector) != 0) gradients.push_back(in_type(*found.vector, parameters));
  if ((needs & need_bias) != 0) gradients.push_back(dense.sum_of_rows(grad, parameters));
  return gradients;
}

}  // namespace

void register_gatv2(torch::stable::detail::StableLibrary& library) {
  implement(library, "gatv2", TORCH_BOX(&Guarded<&gatv2>::run));
  implement(library, "gatv2_backward", TORCH_BOX(&Guarded<&gatv2_backward>::run));
}

}  // namespace tessera::torch_ops
