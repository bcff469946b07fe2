// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include "tessera/ops/attention_kept.hpp"
#include "tessera/ops/dropout.hpp"

#include "ops/attention/kernel.hpp"
#include "ops/attention/reference.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/placed_matrix.hpp"

namespace tessera::test {

/// Operands and results of one attention problem, stored as T.
template <class T>
struct AttentionCase {
  using S = std::conditional_t<std::is_same_v<T, double>, double, float>;

  AttentionCase(const Graph& the_graph, const ops::AttentionOptions& the_options,
                std::uint64_t seed)
      : graph(the_graph), options(the_options) {
    options.precision = ops::PrecisionOf<T>::value;
    options.backward = true;
    const std::int64_t score_cols =
        options.form == ops::AttentionForm::gat ? options.heads : options.features;
    const auto width = static_cast<double>(options.features) / static_cast<double>(options.heads);
    target = normal_matrix<T>(graph.num_rows(), score_cols, seed);
    source = normal_matrix<T>(graph.num_cols(), score_cols, seed + 1);
    value = normal_matrix<T>(graph.num_cols(), options.features, seed + 2);
    vector = normal_matrix<T>(1, options.features, seed + 3);
    grad_output = normal_matrix<T>(graph.num_rows(), options.features, seed + 4);
    if (width > 0) scale = 1 / std::sqrt(width);
    output = poisoned(graph.num_rows(), options.features);
    log_sum = Matrix<S>(graph.num_rows(), options.heads, std::numeric_limits<S>::quiet_NaN());
    grad_target = poisoned(graph.num_rows(), score_cols);
    grad_source = poisoned(graph.num_cols(), score_cols);
    grad_value = poisoned(graph.num_cols(), options.features);
    grad_vector = poisoned(1, options.features);
    testing::note_compared();
  }

  static Matrix<T> poisoned(std::int64_t rows, std::int64_t cols) {
    return Matrix<T>(rows, cols, static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
  }

  ops::AttentionInputs inputs() const {
    ops::AttentionInputs inputs{target, source, value, {}, 1, random};
    if (options.form == ops::AttentionForm::gatv2) inputs.vector = vector;
    if (options.form == ops::AttentionForm::dot) inputs.scale = scale;
    return inputs;
  }

  ops::AttentionGradOutputs gradients() {
    ops::AttentionGradOutputs gradients{grad_target, grad_source, grad_value, {}, nullptr};
    if (options.form == ops::AttentionForm::gatv2) gradients.vector = grad_vector;
    if (options.form == ops::AttentionForm::dot) gradients.scale = &grad_scale;
    return gradients;
  }

  /// Forward and backward with a plan of these options.
  void run_all();

  Graph graph;
  ops::AttentionOptions options;
  Matrix<T> target, source, value, vector, grad_output;
  double scale = 1;
  Random random = Random(12, 3, 4);

  Matrix<T> output, grad_target, grad_source, grad_value, grad_vector;
  Matrix<S> log_sum;
  double grad_scale = std::numeric_limits<double>::quiet_NaN();
};

/// The matrices of a case on the device of its plan. `fetch` brings all results back.
template <class T>
struct PlacedAttention {
  using S = typename AttentionCase<T>::S;

  explicit PlacedAttention(AttentionCase<T>& of)
      : PlacedAttention(of, ops::plan_attention(of.graph, of.options)) {}
  PlacedAttention(AttentionCase<T>& of, const ops::AttentionPlan& the_plan)
      : source_case(of),
        plan(the_plan),
        device(the_plan.options().device),
        target(of.target, device),
        source(of.source, device),
        value(of.value, device),
        vector(of.vector, device),
        grad_output(of.grad_output, device),
        output(of.output, device),
        grad_target(of.grad_target, device),
        grad_source(of.grad_source, device),
        grad_value(of.grad_value, device),
        grad_vector(of.grad_vector, device),
        log_sum(of.log_sum, device),
        host_kept(1, ops::kept_numbers(plan), std::numeric_limits<S>::quiet_NaN()),
        kept(host_kept, device),
        host_grad_scale(1, 1, of.grad_scale),
        grad_scale(host_grad_scale, device) {}

  ops::AttentionInputs inputs() {
    ops::AttentionInputs inputs = source_case.inputs();
    inputs.target = target.view();
    inputs.source = source.view();
    inputs.value = value.view();
    if (!inputs.vector.absent()) inputs.vector = vector.view();
    return inputs;
  }
  ops::AttentionOutputs outputs() { return {output.view(), log_sum.view()}; }
  ops::AttentionGradOutputs gradients() {
    ops::AttentionGradOutputs gradients = source_case.gradients();
    gradients.target = grad_target.view();
    gradients.source = grad_source.view();
    gradients.value = grad_value.view();
    if (!gradients.vector.absent()) gradients.vector = grad_vector.view();
    if (gradients.scale != nullptr) gradients.scale = grad_scale.view().data;
    return gradients;
  }

  /// Brings operands that have changed.
  void send() {
    for (PlacedMatrix<T>* matrix : {&target, &source, &value, &vector, &grad_output}) {
      matrix->send();
    }
  }
  ops::Operand kept_operand() {
    return keeps && host_kept.size() > 0 ? ops::Operand(kept.view()) : ops::Operand();
  }
  void run_forward(Stream stream = {}) {
    ops::run_keeping(plan, inputs(), outputs(), kept_operand(), stream);
  }
  void run_backward(const ops::AttentionGradOutputs& wanted, Stream stream = {}) {
    ops::run_backward_kept(plan, inputs(), output.view(), log_sum.view(), kept_operand(),
                           grad_output.view(), wanted, stream);
  }
  void fetch() {
    for (PlacedMatrix<T>* matrix :
         {&output, &grad_target, &grad_source, &grad_value, &grad_vector}) {
      matrix->fetch();
    }
    log_sum.fetch();
    grad_scale.fetch();
    source_case.grad_scale = host_grad_scale(0, 0);
  }

  AttentionCase<T>& source_case;
  ops::AttentionPlan plan;
  Device device;
  PlacedMatrix<T> target, source, value, vector, grad_output;
  PlacedMatrix<T> output, grad_target, grad_source, grad_value, grad_vector;
  PlacedMatrix<S> log_sum;
  bool keeps = true;  ///< whether the forward run keeps what the backward run can use
  Matrix<S> host_kept;
  PlacedMatrix<S> kept;
  Matrix<double> host_grad_scale;
  PlacedMatrix<double> grad_scale;
};

template <class T>
void AttentionCase<T>::run_all() {
  PlacedAttention<T> placed(*this);
  placed.run_forward();
  placed.run_backward(placed.gradients());
  placed.fetch();
}

/// The same operands in double precision, with the reference's results.
template <class T>
AttentionCase<double> reference_of(const AttentionCase<T>& from) {
  AttentionCase<double> result(from.graph, from.options, 0);
  result.options.device = {};
  result.target = to_double(from.target);
  result.source = to_double(from.source);
  result.value = to_double(from.value);
  result.vector = to_double(from.vector);
  result.grad_output = to_double(from.grad_output);
  result.scale = from.scale;
  result.random = from.random;
  ops::reference::attention(result.graph, result.options, result.inputs(),
                            {result.output, result.log_sum});
  ops::reference::attention_backward(result.graph, result.options, result.inputs(),
                                     result.grad_output, result.gradients());
  return result;
}

/// The sums behind each result with every term replaced by its magnitude: what rounding errors are
/// measured against.
struct AttentionMagnitudes {
  explicit AttentionMagnitudes(const AttentionCase<double>& of)
      : output(of.graph.num_rows(), of.options.features, 0.0),
        target(of.target.rows(), of.target.cols(), 0.0),
        source(of.source.rows(), of.source.cols(), 0.0),
        value(of.value.rows(), of.value.cols(), 0.0),
        vector(1, of.options.features, 0.0) {
    const std::int64_t heads = of.options.heads;
    Matrix<double> weights(of.graph.num_edges(), heads);
    ops::reference::attention_weights(of.graph, of.options, of.inputs(), weights);
    for (VertexId i = 0; i < of.graph.num_rows(); ++i) {
      for (std::int64_t head = 0; head < heads; ++head) add_outputs(of, weights, i, head);
      for (std::int64_t head = 0; head < heads; ++head) add_gradients(of, weights, i, head);
    }
  }

  Matrix<double> output, target, source, value, vector;
  double scale = 0;
  /// The largest sum of magnitudes behind a score: its error enters the exponent.
  double score = 0;

 private:
  using Case = AttentionCase<double>;

  template <class Body>
  static void for_edges(const Case& of, VertexId i, std::int64_t head, Body&& body) {
    const ops::Dropout dropout{of.options.dropout, of.random};
    for (EdgeOffset e = of.graph.row_offsets()[i]; e < of.graph.row_offsets()[i + 1]; ++e) {
      const auto element = static_cast<std::uint64_t>(e * of.options.heads + head);
      body(e, of.graph.col_indices()[e], dropout.factor(element));
    }
  }

  void add_outputs(const Case& of, const Matrix<double>& weights, VertexId i, std::int64_t head) {
    const std::int64_t width = of.options.features / of.options.heads;
    for_edges(of, i, head, [&](EdgeOffset e, VertexId j, double factor) {
      for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
        output(i, f) += weights(e, head) * factor * std::abs(of.value(j, f));
        value(j, f) += weights(e, head) * factor * std::abs(of.grad_output(i, f));
      }
    });
  }

  void add_gradients(const Case& of, const Matrix<double>& weights, VertexId i, std::int64_t head) {
    const std::int64_t width = of.options.features / of.options.heads;
    double row_dot = 0;
    for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
      row_dot += std::abs(of.grad_output(i, f)) * output(i, f);
    }
    for_edges(of, i, head, [&](EdgeOffset e, VertexId j, double factor) {
      double grad = row_dot;
      for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
        grad += factor * std::abs(of.grad_output(i, f) * of.value(j, f));
      }
      add_score_gradients(of, i, j, head, weights(e, head) * grad);
    });
  }

  void add_score_gradients(const Case& of, VertexId i, VertexId j, std::int64_t head, double grad) {
    const bool gat = of.options.form == ops::AttentionForm::gat;
    const bool dot = of.options.form == ops::AttentionForm::dot;
    const std::int64_t width = gat ? 1 : of.options.features / of.options.heads;
    double score_sum = 0;
    for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
      const double t = std::abs(of.target(i, f));
      const double s = std::abs(of.source(j, f));
      const double a = gat ? 1 : std::abs(of.vector(0, f));
      score_sum += dot ? std::abs(of.scale) * t * s : a * (t + s);
      target(i, f) += grad * (dot ? std::abs(of.scale) * s : a);
      source(j, f) += grad * (dot ? std::abs(of.scale) * t : a);
      if (dot) scale += grad * t * s;
      if (!dot && !gat) vector(0, f) += grad * (t + s);
    }
    score = std::max(score, score_sum);
  }
};

/// How far results may be from the reference, relative to their magnitudes.
template <class T>
double attention_tolerance(const AttentionMagnitudes& magnitudes, bool strict,
                           double weight_error) {
  // What tensor cores may make of sums, and of the sums behind a score. Weights that are off by a
  // share of theirs move a weighted mean by twice that share.
  if (!strict) return 1e-5 * (1 + magnitudes.score) + 2 * weight_error;
  const double unit = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  return testing::tolerance_of(ops::PrecisionOf<T>::value).of_magnitude +
         8 * unit * magnitudes.score;
}

template <class T>
void expect_within(const Matrix<T>& computed, const Matrix<double>& expected,
                   const Matrix<double>& magnitude, double tolerance, const char* what,
                   double absolute = 0) {
  testing::Tolerance allowed = testing::tolerance_of(ops::PrecisionOf<T>::value);
  allowed.of_magnitude = tolerance;
  allowed.absolute += absolute;
  EXPECT_EQ(testing::first_mismatch(computed.view(), expected, magnitude, allowed), "")
      << what << ", tolerance " << tolerance;
}

/// All results of a case that has been run, against the reference.
template <class T>
void expect_matches_reference(const AttentionCase<T>& run) {
  const AttentionCase<double> expected = reference_of(run);
  const AttentionMagnitudes magnitudes(expected);
  const bool strict = run.options.kernel.empty() || testing::kernel_info(run.options.kernel).strict;
  const double weight_error = ops::attention_weight_error(run.options.kernel, run.options);
  const double tolerance = attention_tolerance<T>(magnitudes, strict, weight_error);
  // Backward starts from the stored output, whose 16-bit rounding enters dO . O.
  const double grad_tolerance =
      4 * tolerance + testing::tolerance_of(ops::PrecisionOf<T>::value).of_result;
  // Outputs below 2^-14 are multiples of 2^-24 in fp16, and all features' errors meet there.
  const double small = std::is_same_v<T, Float16> ? 0x1p-20 : 0;
  expect_within(run.output, expected.output, magnitudes.output, tolerance, "output");
  for (std::int64_t i = 0; i < expected.log_sum.size(); ++i) {
    const double log_sum = expected.log_sum.data()[i];
    const auto computed = static_cast<double>(run.log_sum.data()[i]);
    if (std::isinf(log_sum)) {
      EXPECT_EQ(computed, log_sum);
    } else {
      EXPECT_NEAR(computed, log_sum, tolerance * (1 + std::abs(log_sum)));
    }
  }
  expect_within(run.grad_value, expected.grad_value, magnitudes.value, grad_tolerance, "value",
                small);
  expect_within(run.grad_target, expected.grad_target, magnitudes.target, grad_tolerance, "target",
                small);
  expect_within(run.grad_source, expected.grad_source, magnitudes.source, grad_tolerance, "source",
                small);
  if (run.options.form == ops::AttentionForm::gatv2) {
    expect_within(run.grad_vector, expected.grad_vector, magnitudes.vector, grad_tolerance,
                  "vector", small * static_cast<double>(run.graph.num_rows()));
  }
  if (run.options.form == ops::AttentionForm::dot) {
    EXPECT_NEAR(
        run.grad_scale, expected.grad_scale,
        grad_tolerance * magnitudes.scale + small * static_cast<double>(run.graph.num_rows()));
  }
}

/// All results of two runs of one case.
template <class T>
void expect_same_results(const AttentionCase<T>& a, const AttentionCase<T>& b) {
  EXPECT_TRUE(same_bits(a.output, b.output));
  EXPECT_TRUE(same_bits(a.log_sum, b.log_sum));
  EXPECT_TRUE(same_bits(a.grad_target, b.grad_target));
  EXPECT_TRUE(same_bits(a.grad_source, b.grad_source));
  EXPECT_TRUE(same_bits(a.grad_value, b.grad_value));
  if (a.options.form == ops::AttentionForm::gatv2) {
    EXPECT_TRUE(same_bits(a.grad_vector, b.grad_vector));
  }
  if (a.options.form == ops::AttentionForm::dot) {
    EXPECT_EQ(a.grad_scale, b.grad_scale);
  }
}

}  // namespace tessera::test
