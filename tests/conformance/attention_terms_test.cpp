// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_kernels.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"

#include "ops/attention/reference.hpp"

/// Attention with a term for each edge, by the kernels that take one.
namespace tessera::test {
namespace {

/// Operands and results of one problem, stored as T.
template <class T>
struct TermsCase {
  TermsCase(const Graph& the_graph, const AttentionOptions& the_options, std::uint64_t seed)
      : graph(the_graph), options(the_options) {
    options.precision = ops::PrecisionOf<T>::value;
    options.backward = true;
    options.edge_terms = true;
    const std::int64_t score_cols =
        options.form == AttentionForm::gat ? options.heads : options.features;
    target = normal_matrix<T>(graph.num_rows(), score_cols, seed);
    source = normal_matrix<T>(graph.num_cols(), score_cols, seed + 1);
    value = normal_matrix<T>(graph.num_cols(), options.features, seed + 2);
    term = normal_matrix<T>(graph.num_edges(), has_vector() ? options.features : options.heads,
                            seed + 3);
    vector = normal_matrix<T>(1, has_vector() ? options.features : 0, seed + 5);
    grad_output = normal_matrix<T>(graph.num_rows(), options.features, seed + 4);
    output = like(grad_output);
    grad_target = like(target);
    grad_source = like(source);
    grad_value = like(value);
    grad_term = like(term);
    grad_vector = like(vector);
    weights = Matrix<T>(graph.num_edges(), options.heads, std::numeric_limits<T>::quiet_NaN());
    log_sum = Matrix<T>(graph.num_rows(), options.heads, std::numeric_limits<T>::quiet_NaN());
    testing::note_compared();
  }

  static Matrix<T> like(const Matrix<T>& other) {
    return Matrix<T>(other.rows(), other.cols(), std::numeric_limits<T>::quiet_NaN());
  }

  bool has_vector() const { return options.form == AttentionForm::gatv2; }

  ops::AttentionInputs inputs() const {
    ops::AttentionInputs inputs{target, source, value};
    if (has_vector()) inputs.vector = vector;
    inputs.scale = 0.3;
    inputs.random = Random(12, 3, 4);
    inputs.edge_term = term;
    return inputs;
  }

  /// Forward, backward and weights, where the kernel runs.
  void run_all() {
    const ops::AttentionPlan plan = ops::plan_attention(graph, options);
    const Device device = options.device;
    PlacedMatrix<T> on_target(target, device), on_source(source, device), on_value(value, device),
        on_term(term, device), on_grad(grad_output, device), on_output(output, device),
        on_log_sum(log_sum, device), on_weights(weights, device),
        on_grad_target(grad_target, device), on_grad_source(grad_source, device),
        on_grad_value(grad_value, device), on_grad_term(grad_term, device),
        on_vector(vector, device), on_grad_vector(grad_vector, device);
    ops::AttentionInputs placed = inputs();
    placed.target = on_target.view();
    placed.source = on_source.view();
    placed.value = on_value.view();
    placed.edge_term = on_term.view();
    if (has_vector()) placed.vector = on_vector.view();
    ops::run(plan, placed, {on_output.view(), on_log_sum.view()});
    ops::attention_weights(plan, placed, on_log_sum.view(), on_weights.view());
    ops::AttentionGradOutputs gradients;
    gradients.target = on_grad_target.view();
    gradients.source = on_grad_source.view();
    gradients.value = on_grad_value.view();
    gradients.edge_term = on_grad_term.view();
    if (has_vector()) gradients.vector = on_grad_vector.view();
    ops::run_backward(plan, placed, on_output.view(), on_log_sum.view(), on_grad.view(), gradients);
    for (PlacedMatrix<T>* matrix :
         {&on_output, &on_log_sum, &on_weights, &on_grad_target, &on_grad_source, &on_grad_value,
          &on_grad_term, &on_grad_vector}) {
      matrix->fetch();
    }
  }

  Graph graph;
  AttentionOptions options;
  Matrix<T> target, source, value, term, vector, grad_output, output, log_sum, weights;
  Matrix<T> grad_target, grad_source, grad_value, grad_term, grad_vector;
};

/// The same operands in double precision, with the reference's results.
template <class T>
TermsCase<double> reference_of(const TermsCase<T>& from) {
  TermsCase<double> result(from.graph, from.options, 0);
  result.target = to_double(from.target);
  result.source = to_double(from.source);
  result.value = to_double(from.value);
  result.term = to_double(from.term);
  result.vector = to_double(from.vector);
  result.grad_output = to_double(from.grad_output);
  const ops::AttentionInputs inputs = result.inputs();
  ops::reference::attention(result.graph, result.options, inputs, {result.output, result.log_sum});
  ops::reference::attention_weights(result.graph, result.options, inputs, result.weights);
  ops::AttentionGradOutputs gradients;
  gradients.target = result.grad_target;
  gradients.source = result.grad_source;
  gradients.value = result.grad_value;
  gradients.edge_term = result.grad_term;
  if (result.has_vector()) gradients.vector = result.grad_vector;
  ops::reference::attention_backward(result.graph, result.options, inputs, result.grad_output,
                                     gradients);
  return result;
}

/// Tensor cores may be off by 1e-5 of what dot products sum, and so may exponents.
template <class T>
double allowed(const AttentionOptions& options) {
  if (std::is_same_v<T, double>) return 1e-11;
  return options.device.kind == DeviceKind::cpu ? 3e-5 : 5e-4;
}

template <class T>
void expect_close(const Matrix<T>& computed, const Matrix<double>& expected, double bound,
                  const char* what) {
  double largest = 1;
  for (const double number : expected.span()) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double number = static_cast<double>(computed.data()[i]);
    if (number == expected.data()[i]) continue;  // infinities of rows without edges
    ASSERT_NEAR(number, expected.data()[i], bound * largest) << what << ", element " << i;
  }
}

template <class T>
void check(const Graph& graph, const AttentionOptions& options, std::uint64_t seed,
           Precision precision = ops::PrecisionOf<T>::value) {
  SCOPED_TRACE(describe(options) + ", seed " + std::to_string(seed));
  TermsCase<T> run(graph, options, seed);
  run.options.precision = precision;
  run.run_all();
  const TermsCase<double> expected = reference_of(run);
  const double bound = allowed<T>(options);
  expect_close(run.output, expected.output, bound, "output");
  expect_close(run.log_sum, expected.log_sum, bound, "log_sum");
  expect_close(run.weights, expected.weights, bound, "weights");
  expect_close(run.grad_target, expected.grad_target, bound, "gradient of target");
  expect_close(run.grad_source, expected.grad_source, bound, "gradient of source");
  expect_close(run.grad_value, expected.grad_value, bound, "gradient of value");
  expect_close(run.grad_term, expected.grad_term, bound, "gradient of edge_term");
  expect_close(run.grad_vector, expected.grad_vector, bound, "gradient of vector");
}

class AttentionTermsOnDevice : public AttentionKernelTest {
 protected:
  void check_all_forms(const Graph& graph, std::int64_t heads, std::int64_t width, double dropout,
                       std::uint64_t seed) const {
    for (const AttentionForm form : all_forms) {
      const AttentionOptions options = options_of(GetParam(), form, heads, width, dropout);
      check<float>(graph, options, seed);
      if (on_cpu(GetParam())) check<double>(graph, options, seed);
    }
  }
};

TEST_P(AttentionTermsOnDevice, OddGraphs) {
  for (const testing::NamedGraph& odd : testing::odd_patterns()) {
    SCOPED_TRACE(odd.name);
    check_all_forms(odd.graph, 2, 5, 0, 4000);
    check_all_forms(odd.graph, 1, 16, 0.4, 4010);
  }
}

TEST_P(AttentionTermsOnDevice, AnyWidth) {
  const Graph graph = testing::random_graph(33, 47, 300, 41, false);
  for (const std::int64_t width : {1, 3, 8, 17, 33}) {
    check_all_forms(graph, 1, width, 0, 4100);
    check_all_forms(graph, 3, width, 0.5, 4110);
  }
}

/// The gradient of a vector is summed over pieces of the edges.
TEST_P(AttentionTermsOnDevice, VectorsOfManyEdgesAndFeatures) {
  const Graph graph = testing::random_graph(300, 280, 70000, 45, false);
  check<float>(graph, options_of(GetParam(), AttentionForm::gatv2, 2, 40, 0), 4600);
}

TEST_P(AttentionTermsOnDevice, Hubs) {
  check_all_forms(testing::star_graph(5000), 4, 8, 0.2, 4200);
}

TEST_P(AttentionTermsOnDevice, ASlopeOfAnySign) {
  const Graph graph = testing::random_graph(30, 30, 200, 42, false);
  for (const double slope : {-0.5, 0.0, 1.5}) {
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::gatv2}) {
      AttentionOptions options = options_of(GetParam(), form, 2, 4, 0);
      options.negative_slope = slope;
      check<float>(graph, options, 4300);
    }
  }
}

/// Where tf32 is allowed, plans with terms compute in fp32.
TEST_P(AttentionTermsOnDevice, Tf32IsComputedInFp32) {
  const Graph graph = testing::random_graph(70, 60, 900, 44, false);
  for (const AttentionForm form : all_forms) {
    check<float>(graph, options_of(GetParam(), form, 2, 16, 0), 4500, Precision::tf32);
  }
}

/// A plan's terms are wanted by its runs, and by no others.
TEST_P(AttentionTermsOnDevice, TermsAreOfThePlan) {
  const Graph graph = testing::random_graph(20, 20, 60, 43, false);
  TermsCase<float> run(graph, options_of(GetParam(), AttentionForm::gat, 1, 4, 0), 4400);
  run.run_all();
  if (!on_cpu(GetParam())) return;
  const auto code = ErrorCode::invalid_argument;
  const ops::AttentionPlan with = ops::plan_attention(graph, run.options);
  ops::AttentionInputs inputs = run.inputs();
  inputs.edge_term = {};
  testing::expect_error(code, {"edge_term"}, [&] { ops::run(with, inputs, {run.output}); });
  AttentionOptions options = run.options;
  options.edge_terms = false;
  options.kernel.clear();
  const ops::AttentionPlan without = ops::plan_attention(graph, options);
  testing::expect_error(code, {"the plan has none"},
                        [&] { ops::run(without, run.inputs(), {run.output}); });
  options.edge_terms = true;
  options.form = AttentionForm::cosine;
  testing::expect_error(code, {"has no terms of edges"},
                        [&] { ops::plan_attention(graph, options); });
}

std::vector<std::string> kernels_with_terms() {
  std::vector<std::string> names = testing::kernel_names("attention");
  std::erase_if(names, [](const std::string& name) { return !name.ends_with("/terms"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTermsOnDevice, ::testing::ValuesIn(kernels_with_terms()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
