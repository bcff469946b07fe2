// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "ops/attention/reference.hpp"
#include "support/attention_kernels.hpp"
#include "support/comparisons.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/matrices.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"

/// Attention by cosines: operands, and runs against the reference.
namespace tessera::test {

/// Operands and results of one problem, stored as T. Scores are cosines, so sums are as exact as
/// rows are, whatever their lengths.
template <class T>
struct CosineCase {
  CosineCase(const Graph& the_graph, const AttentionOptions& the_options, std::uint64_t seed)
      : graph(the_graph), options(the_options) {
    options.precision = ops::PrecisionOf<T>::value;
    options.backward = true;
    value = normal_matrix<T>(graph.num_rows(), options.features, seed);
    grad_output = normal_matrix<T>(graph.num_rows(), options.features, seed + 1);
    factor = Matrix<T>(1, 1, static_cast<T>(1.5f));
    output = poisoned(graph.num_rows(), options.features);
    grad_value = poisoned(graph.num_rows(), options.features);
    grad_factor = poisoned(1, 1);
    log_sum = Matrix<S>(graph.num_rows(), 1, std::numeric_limits<S>::quiet_NaN());
    testing::note_compared();
  }

  using S = std::conditional_t<std::is_same_v<T, double>, double, float>;

  static Matrix<T> poisoned(std::int64_t rows, std::int64_t cols) {
    return Matrix<T>(rows, cols, static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
  }

  ops::AttentionInputs inputs() const {
    ops::AttentionInputs inputs;
    inputs.value = value;
    inputs.vector = factor;
    inputs.random = Random(12, 3, 4);
    return inputs;
  }

  void run_all(bool of_value = true, bool of_factor = true) {
    const ops::AttentionPlan plan = ops::plan_attention(graph, options);
    const Device device = options.device;
    PlacedMatrix<T> on_value(value, device), on_factor(factor, device), on_output(output, device),
        on_grad(grad_output, device), on_grad_value(grad_value, device),
        on_grad_factor(grad_factor, device);
    Matrix<S> lengths(1, graph.num_cols(), std::numeric_limits<S>::quiet_NaN());
    PlacedMatrix<S> on_log_sum(log_sum, device), on_lengths(lengths, device);
    ops::AttentionInputs placed = inputs();
    placed.value = on_value.view();
    placed.vector = on_factor.view();
    ops::run(plan, placed, {on_output.view(), on_log_sum.view(), on_lengths.view()});
    ops::AttentionGradOutputs gradients;
    if (of_value) gradients.value = on_grad_value.view();
    if (of_factor) gradients.vector = on_grad_factor.view();
    const auto differentiate = [&] {
      ops::run_backward(plan, placed, on_output.view(), on_log_sum.view(), on_grad.view(),
                        gradients);
      for (PlacedMatrix<T>* matrix : {&on_output, &on_grad_value, &on_grad_factor}) matrix->fetch();
    };
    placed.inverse_lengths = on_lengths.view();
    differentiate();
    Matrix<T> kept_value(grad_value.rows(), grad_value.cols()), kept_factor(1, 1);
    std::copy(grad_value.span().begin(), grad_value.span().end(), kept_value.span().begin());
    kept_factor(0, 0) = grad_factor(0, 0);
    placed.inverse_lengths = {};
    differentiate();
    EXPECT_TRUE(same_bits(kept_value, grad_value)) << "with lengths that were kept";
    EXPECT_TRUE(same_bits(kept_factor, grad_factor)) << "with lengths that were kept";
    on_log_sum.fetch();
  }

  Graph graph;
  AttentionOptions options;
  Matrix<T> value, factor, grad_output, output, grad_value, grad_factor;
  Matrix<S> log_sum;
};

/// The same operands in double precision, with the reference's results.
template <class T>
CosineCase<double> reference_of(const CosineCase<T>& from) {
  CosineCase<double> result(from.graph, from.options, 0);
  result.value = to_double(from.value);
  result.factor = to_double(from.factor);
  result.grad_output = to_double(from.grad_output);
  ops::reference::attention(result.graph, result.options, result.inputs(),
                            {result.output, result.log_sum});
  ops::AttentionGradOutputs gradients;
  gradients.value = result.grad_value;
  gradients.vector = result.grad_factor;
  ops::reference::attention_backward(result.graph, result.options, result.inputs(),
                                     result.grad_output, gradients);
  return result;
}

/// Numbers are of the size of 1, or of that of a row and the inverse of its length.
template <class T>
double allowed() {
  if (std::is_same_v<T, double>) return 1e-12;
  if (std::is_same_v<T, float>) return 2e-5;
  return std::is_same_v<T, Bfloat16> ? 3e-2 : 4e-3;
}

template <class T>
void expect_close(const Matrix<T>& computed, const Matrix<double>& expected, double tolerance,
                  const char* what) {
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const auto number = static_cast<double>(computed.data()[i]);
    ASSERT_NEAR(number, expected.data()[i], tolerance * (1 + std::abs(expected.data()[i])))
        << what << ", element " << i;
  }
}

/// The largest sum of magnitudes behind a gradient: edges that meet at a vertex, and the inverse
/// of the shortest row.
template <class T>
double gradient_size(const CosineCase<double>& of) {
  double size = 1;
  for (const double gradient : of.grad_value.span()) size = std::max(size, std::abs(gradient));
  return size;
}

template <class T>
void expect_matches_reference(const CosineCase<T>& run) {
  const CosineCase<double> expected = reference_of(run);
  expect_close(run.output, expected.output, allowed<T>(), "output");
  const double size = gradient_size<T>(expected);
  expect_close(run.grad_value, expected.grad_value, 4 * size * allowed<T>(), "gradient of values");
  const double edges = std::sqrt(static_cast<double>(run.graph.num_edges()) + 1);
  expect_close(run.grad_factor, expected.grad_factor, 4 * edges * allowed<T>(),
               "gradient of the factor");
}

template <class T>
void check(const Graph& graph, AttentionOptions options, std::uint64_t seed) {
  options.precision = ops::PrecisionOf<T>::value;
  if (!supports(options.kernel, options)) return testing::note_declined(describe(options));
  SCOPED_TRACE(describe(options) + ", " + to_string(options.precision) + ", seed " +
               std::to_string(seed));
  CosineCase<T> run(graph, options, seed);
  run.run_all();
  expect_matches_reference(run);
}

inline void check_all_precisions(const Graph& graph, const AttentionOptions& options,
                                 std::uint64_t seed) {
  check<float>(graph, options, seed);
  check<Bfloat16>(graph, options, seed);
  if (on_cpu(options.kernel)) return check<double>(graph, options, seed);
  check<Float16>(graph, options, seed);
}

}  // namespace tessera::test
