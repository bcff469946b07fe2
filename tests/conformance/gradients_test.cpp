// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "ops/plan/check.hpp"
#include "ops/sddmm/reference.hpp"
#include "ops/spmm/reference.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/finite_differences.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// Gradients of spmm and sddmm: in double against finite differences, and in every precision
/// against the reference's own backward pass.
namespace tessera::ops {
namespace {

using testing::gradient_mismatch;
using testing::NamedGraph;
using testing::NumberKind;
using testing::weighted_sum;

constexpr Reduction reductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                    Reduction::min};

bool has_winners(Reduction reduction) {
  return reduction == Reduction::max || reduction == Reduction::min;
}

/// Directed, with loops, an empty row, values and scales.
Graph weighted_graph(VertexId num_rows, VertexId num_cols) {
  return testing::with_all_weights(
             {"", testing::random_graph(num_rows, num_cols, 4 * num_rows, 81, false)},
             NumberKind::normal)[3]
      .graph;
}

/// Whatever kernel a plan for the GPU chooses.
const std::string chosen_on_gpu = "chosen/cuda/any";

std::vector<std::string> kernels_and_chosen(const std::string& op) {
  std::vector<std::string> names = testing::kernel_names(op);
  if (num_gpus() > 0) names.push_back(chosen_on_gpu);
  return names;
}

bool on_gpu(const std::string& kernel) {
  return testing::device_of(kernel).kind != DeviceKind::cpu;
}

/// Calls body(T{}) for every precision that a device stores.
template <class Body>
void for_precisions(Device device, Body&& body) {
  body(float{});
  body(Bfloat16{});
  if (device.kind == DeviceKind::cpu) {
    body(double{});
  } else {
    body(Float16{});
  }
}

SpmmOptions spmm_options(const std::string& kernel, Reduction reduction, Precision precision,
                         std::int64_t features) {
  SpmmOptions options;
  // Kernels on the GPU, and those that have no other, are asked for the backward pass alone.
  if (kernel.starts_with("spmm/cpu/")) options.kernel = kernel;
  if (kernel != chosen_on_gpu) options.backward_kernel = kernel;
  options.backward = true;
  options.reduction = reduction;
  options.precision = precision;
  options.features = features;
  options.device = testing::device_of(kernel);
  return options;
}

class SpmmGradients : public testing::KernelTest {};

TEST_P(SpmmGradients, MatchFiniteDifferences) {
  if (on_gpu(GetParam())) GTEST_SKIP() << "fp64 exists on the CPU only";
  constexpr std::int64_t features = 5;
  for (const auto& [rows, cols] : {std::pair<VertexId, VertexId>{17, 17}, {9, 21}, {21, 9}}) {
    const Graph graph = weighted_graph(rows, cols);
    Matrix<double> x = test::normal_matrix<double>(cols, features, 82);
    Matrix<double> edge_values = test::normal_matrix<double>(graph.num_edges(), 1, 83);
    const Matrix<double> grad_y = test::normal_matrix<double>(rows, features, 84);
    for (const Reduction reduction : reductions) {
      if (!testing::takes(GetParam(), reduction)) continue;
      SCOPED_TRACE(std::string(to_string(reduction)) + ", " + std::to_string(rows) + " rows");
      const SpmmOptions options = spmm_options(GetParam(), reduction, Precision::fp64, features);
      const SpmmPlan plan = plan_spmm(graph, options);
      Matrix<double> y(rows, features);
      Matrix<VertexId> winners(rows, features);
      const auto loss = [&] {
        SpmmOutputs outputs{y};
        if (has_winners(reduction)) outputs.winners = winners.view();
        run(plan, {x, edge_values}, outputs);
        return weighted_sum(y, grad_y);
      };
      loss();
      Matrix<double> grad_x(cols, features, std::numeric_limits<double>::quiet_NaN());
      Matrix<double> grad_values(graph.num_edges(), 1, std::numeric_limits<double>::quiet_NaN());
      SpmmGradInputs inputs{grad_y, x, edge_values};
      if (has_winners(reduction)) inputs.winners = winners.view();
      run_backward(plan, inputs, {grad_x, grad_values});
      testing::note_compared();
      EXPECT_EQ(gradient_mismatch(x, grad_x, loss), "");
      EXPECT_EQ(gradient_mismatch(edge_values, grad_values, loss), "");
    }
  }
}

/// CPU kernels and what a plan chooses take every case; a CUDA kernel may decline some.
std::optional<SpmmPlan> backward_plan(const Graph& graph, const SpmmOptions& options) {
  try {
    SpmmPlan plan = plan_spmm(graph, options);
    testing::note_compared();
    return plan;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    EXPECT_TRUE(options.device.kind != DeviceKind::cpu && !options.backward_kernel.empty())
        << error.what();
    testing::note_declined(error.what());
    return {};
  }
}

/// What a kernel's sums may be off by; a plan that is not asked to be strict may choose tiles.
double bound_of_sums(const std::string& kernel, double strict) {
  const bool exact = kernel != chosen_on_gpu && testing::kernel_info(kernel).strict;
  return exact ? strict : 1e-5;
}

/// One backward run in T against the reference fed the same numbers. Gradients of X have so many
/// numbers before and after each row: eight keep rows on boundaries.
template <class T>
void compare_spmm_backward(const std::string& kernel, const Graph& graph, Reduction reduction,
                           std::int64_t features, std::int64_t margin = 3) {
  const SpmmOptions options = spmm_options(kernel, reduction, PrecisionOf<T>::value, features);
  const std::optional<SpmmPlan> plan = backward_plan(graph, options);
  if (!plan) return;
  Matrix<T> grad_y = test::normal_matrix<T>(graph.num_rows(), features, 91);
  Matrix<T> x = test::normal_matrix<T>(graph.num_cols(), features, 92);
  const Matrix<double> grad_y_exact = test::to_double(grad_y);
  const Matrix<double> x_exact = test::to_double(x);
  Matrix<double> y(graph.num_rows(), features);
  Matrix<VertexId> winners(graph.num_rows(), features);
  reference::spmm(graph, reduction, x_exact, {}, y, winners);

  test::Padded<T> grad_x(graph.num_cols(), features, margin);
  test::Padded<T> grad_values(graph.num_edges(), 1);
  const Device device = options.device;
  test::PlacedMatrix<T> placed_grad_y(grad_y, device), placed_x(x, device);
  test::PlacedMatrix<VertexId> placed_winners(winners, device);
  test::Placed<T> placed_grad_x(grad_x, device), placed_grad_values(grad_values, device);
  run_backward(*plan, {placed_grad_y.view(), placed_x.view(), {}, placed_winners.view()},
               {placed_grad_x.view(), placed_grad_values.view()});
  placed_grad_x.fetch();
  placed_grad_values.fetch();
  EXPECT_TRUE(grad_x.margins_intact());
  EXPECT_TRUE(grad_values.margins_intact());

  Matrix<double> expected_x(graph.num_cols(), features);
  Matrix<double> expected_values(graph.num_edges(), 1);
  reference::spmm_backward(graph, reduction, grad_y_exact, x_exact, {}, winners, expected_x,
                           expected_values);
  // The same with absolute numbers is the scale of the errors.
  const auto absolute = [](const Matrix<double>& from) {
    Matrix<double> result = test::copy_of(from);
    for (double& value : result.span()) value = std::abs(value);
    return result;
  };
  const auto absolute_array = [](const SharedArray<float>& from) {
    std::vector<float> result(from.begin(), from.end());
    for (float& value : result) value = std::abs(value);
    return SharedArray<float>(std::move(result));
  };
  const Graph positive =
      graph.with_values(absolute_array(graph.values()))
          .with_scales(absolute_array(graph.row_scale()), absolute_array(graph.col_scale()));
  Matrix<double> magnitude_x(graph.num_cols(), features);
  Matrix<double> magnitude_values(graph.num_edges(), 1);
  reference::spmm_backward(positive, reduction, absolute(grad_y_exact), absolute(x_exact), {},
                           winners, magnitude_x, magnitude_values);
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  tolerance.of_magnitude = bound_of_sums(kernel, tolerance.of_magnitude);
  EXPECT_EQ(testing::first_mismatch(grad_x.view(), expected_x, magnitude_x, tolerance), "");
  EXPECT_EQ(
      testing::first_mismatch(grad_values.view(), expected_values, magnitude_values, tolerance),
      "");
}

TEST_P(SpmmGradients, MatchTheReferenceOnOddGraphs) {
  for (const NamedGraph& pattern : testing::odd_patterns()) {
    for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::normal)) {
      SCOPED_TRACE(named.name);
      for (const Reduction reduction : reductions) {
        if (!testing::takes(GetParam(), reduction)) continue;
        SCOPED_TRACE(to_string(reduction));
        for_precisions(testing::device_of(GetParam()), [&]<class T>(T) {
          SCOPED_TRACE(to_string(PrecisionOf<T>::value));
          compare_spmm_backward<T>(GetParam(), named.graph, reduction, 7);
          if (on_gpu(GetParam())) {
            compare_spmm_backward<T>(GetParam(), named.graph, reduction, 64);
            compare_spmm_backward<T>(GetParam(), named.graph, reduction, 64, 8);
          }
        });
      }
    }
  }
}

TEST_P(SpmmGradients, MatchTheReferenceAtEveryWidth) {
  for (const Graph& graph :
       {weighted_graph(33, 40), testing::random_graph(33, 40, 300, 43, false)}) {
    for (const std::int64_t features : {1, 3, 7, 16, 33, 41, 64, 257}) {
      SCOPED_TRACE(features);
      for (const Reduction reduction : reductions) {
        if (!testing::takes(GetParam(), reduction)) continue;
        SCOPED_TRACE(to_string(reduction));
        compare_spmm_backward<float>(GetParam(), graph, reduction, features);
        compare_spmm_backward<Bfloat16>(GetParam(), graph, reduction, features);
      }
    }
  }
}

/// What is known of the rows of such a graph stands for its columns; its weights do not.
TEST_P(SpmmGradients, MatchTheReferenceWhereEveryEdgeGoesBothWays) {
  const NamedGraph pattern{"", symmetrised(testing::random_graph(150, 150, 900, 74, false))};
  for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::normal)) {
    SCOPED_TRACE(named.name);
    for (const Reduction reduction : reductions) {
      if (!testing::takes(GetParam(), reduction)) continue;
      SCOPED_TRACE(to_string(reduction));
      for (const std::int64_t features : {47, 64}) {
        compare_spmm_backward<float>(GetParam(), named.graph, reduction, features);
        compare_spmm_backward<Bfloat16>(GetParam(), named.graph, reduction, features);
      }
    }
  }
}

TEST_P(SpmmGradients, GiveTheSameBitsForAnyNumberOfThreads) {
  if (on_gpu(GetParam())) GTEST_SKIP() << "of the CPU";
  const Graph graph =
      testing::with_all_weights({"", transposed(testing::hub_graph(2000, 5000, 71))},
                                NumberKind::normal)[3]
          .graph;
  constexpr std::int64_t features = 17;
  const Matrix<float> grad_y = test::normal_matrix<float>(graph.num_rows(), features, 72);
  for (const Reduction reduction : reductions) {
    if (!testing::takes(GetParam(), reduction)) continue;
    SpmmOptions options = spmm_options(GetParam(), reduction, Precision::fp32, features);
    const auto result_with = [&](int threads) {
      const testing::ThreadScope scope(threads);
      Matrix<float> y(graph.num_rows(), features);
      Matrix<VertexId> winners(graph.num_rows(), features);
      const Matrix<float> x = test::normal_matrix<float>(graph.num_cols(), features, 73);
      SpmmOutputs outputs{y};
      if (has_winners(reduction)) outputs.winners = winners.view();
      const SpmmPlan plan = plan_spmm(graph, options);
      run(plan, {x}, outputs);
      Matrix<float> grad_x(graph.num_cols(), features, std::numeric_limits<float>::quiet_NaN());
      testing::note_compared();
      run_backward(plan, {grad_y, x, {}, std::as_const(winners).view()}, {grad_x});
      return grad_x;
    };
    const Matrix<float> expected = result_with(1);
    for (const int threads : {2, 3}) {
      EXPECT_TRUE(test::same_bits(expected, result_with(threads)))
          << to_string(reduction) << " with " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpmmGradients, ::testing::ValuesIn(kernels_and_chosen("spmm")),
                         testing::kernel_test_name);

/// Kernels that know the backward pass of sums and means alone.
class SpmmSumGradients : public testing::KernelTest {};

constexpr Reduction sums[] = {Reduction::sum, Reduction::mean};

TEST_P(SpmmSumGradients, MatchTheReferenceOnOddGraphs) {
  for (const NamedGraph& pattern : testing::odd_patterns()) {
    for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::normal)) {
      SCOPED_TRACE(named.name);
      for (const Reduction reduction : sums) {
        SCOPED_TRACE(to_string(reduction));
        compare_spmm_backward<float>(GetParam(), named.graph, reduction, 7);
        compare_spmm_backward<double>(GetParam(), named.graph, reduction, 7);
      }
    }
  }
}

TEST_P(SpmmSumGradients, MatchTheReferenceAtEveryWidth) {
  const Graph graph = weighted_graph(1000, 40);
  for (const std::int64_t features : {1, 7, 16, 33, 64, 257}) {
    SCOPED_TRACE(features);
    for (const Reduction reduction : sums) {
      compare_spmm_backward<float>(GetParam(), graph, reduction, features);
      compare_spmm_backward<double>(GetParam(), graph, reduction, features);
    }
  }
}

/// Values of 0, which dropout leaves, hide no gradient that is not finite.
TEST_P(SpmmSumGradients, MultiplyWhatIsNotFiniteByZero) {
  const Graph graph = testing::random_graph(90, 20, 900, 85, false);
  constexpr std::int64_t features = 9;
  Matrix<float> values = test::normal_matrix<float>(graph.num_edges(), 1, 86);
  for (std::int64_t e = 0; e < values.size(); ++e) {
    if (e % 5 < 3) values(e, 0) = 0;
  }
  Matrix<float> grad_y = test::normal_matrix<float>(graph.num_rows(), features, 87);
  for (const bool spoiled : {false, true}) {
    if (spoiled) {
      grad_y(3, 8) = std::numeric_limits<float>::infinity();
      grad_y(40, 2) = std::numeric_limits<float>::quiet_NaN();
    }
    const SpmmOptions options = spmm_options(GetParam(), Reduction::sum, Precision::fp32, features);
    Matrix<float> grad_x(graph.num_cols(), features, std::numeric_limits<float>::quiet_NaN());
    testing::note_compared();
    run_backward(plan_spmm(graph, options), {grad_y, {}, values}, {grad_x});
    Matrix<double> expected(graph.num_cols(), features);
    Matrix<double> unused(graph.num_edges(), 1);
    const Matrix<double> x(graph.num_cols(), features, 0.0);
    reference::spmm_backward(graph, Reduction::sum, test::to_double(grad_y), x,
                             test::to_double(values), {}, expected, unused);
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      const auto computed = static_cast<double>(grad_x.data()[i]);
      ASSERT_EQ(std::isfinite(computed), std::isfinite(expected.data()[i]));
      if (std::isfinite(computed)) {
        ASSERT_NEAR(computed, expected.data()[i], 1e-4);
      }
    }
  }
}

TEST_P(SpmmSumGradients, GiveTheSameBitsForAnyNumberOfThreads) {
  const Graph graph = transposed(testing::hub_graph(2000, 5000, 71));
  constexpr std::int64_t features = 17;
  const Matrix<float> grad_y = test::normal_matrix<float>(graph.num_rows(), features, 72);
  const Matrix<float> values = test::normal_matrix<float>(graph.num_edges(), 1, 73);
  const SpmmOptions options = spmm_options(GetParam(), Reduction::sum, Precision::fp32, features);
  const SpmmPlan plan = plan_spmm(graph, options);
  const auto result_with = [&](int threads) {
    const testing::ThreadScope scope(threads);
    Matrix<float> grad_x(graph.num_cols(), features, std::numeric_limits<float>::quiet_NaN());
    run_backward(plan, {grad_y, {}, values}, {grad_x});
    testing::note_compared();
    return grad_x;
  };
  const Matrix<float> expected = result_with(1);
  EXPECT_TRUE(test::same_bits(expected, result_with(2)));
  EXPECT_TRUE(test::same_bits(expected, result_with(3)));
}

INSTANTIATE_TEST_SUITE_P(All, SpmmSumGradients,
                         ::testing::ValuesIn(testing::kernel_names("spmm_backward")),
                         testing::kernel_test_name);

struct SddmmShape {
  EdgeFunction function;
  std::int64_t features;
  std::int64_t heads;
};

constexpr SddmmShape sddmm_shapes[] = {{EdgeFunction::dot, 5, 1},
                                       {EdgeFunction::dot, 12, 3},
                                       {EdgeFunction::dot, 48, 3},
                                       {EdgeFunction::add, 4, 4},
                                       {EdgeFunction::add, 40, 40}};

SddmmOptions sddmm_options(const SddmmShape& shape, Precision precision) {
  SddmmOptions options;
  options.function = shape.function;
  options.precision = precision;
  options.features = shape.features;
  options.heads = shape.heads;
  options.backward = true;
  return options;
}

TEST(SddmmGradients, MatchFiniteDifferences) {
  for (const auto& [rows, cols] : {std::pair<VertexId, VertexId>{17, 17}, {9, 21}, {21, 9}}) {
    const Graph graph = weighted_graph(rows, cols);
    for (const SddmmShape& shape : sddmm_shapes) {
      SCOPED_TRACE(to_string(shape.function));
      Matrix<double> u = test::normal_matrix<double>(rows, shape.features, 82);
      Matrix<double> v = test::normal_matrix<double>(cols, shape.features, 83);
      const Matrix<double> grad_edges =
          test::normal_matrix<double>(graph.num_edges(), shape.heads, 84);
      const SddmmPlan plan = plan_sddmm(graph, sddmm_options(shape, Precision::fp64));
      Matrix<double> edges(graph.num_edges(), shape.heads);
      const auto loss = [&] {
        run(plan, u, v, edges);
        return weighted_sum(edges, grad_edges);
      };
      Matrix<double> grad_u(rows, shape.features, std::numeric_limits<double>::quiet_NaN());
      Matrix<double> grad_v(cols, shape.features, std::numeric_limits<double>::quiet_NaN());
      run_backward(plan, u, v, grad_edges, grad_u, grad_v);
      EXPECT_EQ(gradient_mismatch(u, grad_u, loss), "");
      EXPECT_EQ(gradient_mismatch(v, grad_v, loss), "");
    }
  }
}

template <class T>
void compare_sddmm_backward(const Graph& graph, const SddmmShape& shape, Device device) {
  Matrix<T> u = test::normal_matrix<T>(graph.num_rows(), shape.features, 92);
  Matrix<T> v = test::normal_matrix<T>(graph.num_cols(), shape.features, 93);
  Matrix<T> grad_edges = test::normal_matrix<T>(graph.num_edges(), shape.heads, 94);
  test::Padded<T> grad_u(graph.num_rows(), shape.features);
  test::Padded<T> grad_v(graph.num_cols(), shape.features);
  SddmmOptions options = sddmm_options(shape, PrecisionOf<T>::value);
  options.device = device;
  test::PlacedMatrix<T> placed_u(u, device), placed_v(v, device);
  test::PlacedMatrix<T> placed_grad_edges(grad_edges, device);
  test::Placed<T> placed_grad_u(grad_u, device), placed_grad_v(grad_v, device);
  run_backward(plan_sddmm(graph, options), placed_u.view(), placed_v.view(),
               placed_grad_edges.view(), placed_grad_u.view(), placed_grad_v.view());
  placed_grad_u.fetch();
  placed_grad_v.fetch();
  EXPECT_TRUE(grad_u.margins_intact());
  EXPECT_TRUE(grad_v.margins_intact());

  const auto reference_of = [&](bool of_absolutes) {
    const auto prepared = [&](const Matrix<T>& from) {
      Matrix<double> result = test::to_double(from);
      if (of_absolutes) {
        for (double& value : result.span()) value = std::abs(value);
      }
      return result;
    };
    std::pair<Matrix<double>, Matrix<double>> result{
        Matrix<double>(graph.num_rows(), shape.features),
        Matrix<double>(graph.num_cols(), shape.features)};
    reference::sddmm_backward(graph, shape.function, shape.heads, prepared(u), prepared(v),
                              prepared(grad_edges), result.first, result.second);
    return result;
  };
  const auto expected = reference_of(false);
  const auto magnitude = reference_of(true);
  const testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  EXPECT_EQ(testing::first_mismatch(grad_u.view(), expected.first, magnitude.first, tolerance), "");
  EXPECT_EQ(testing::first_mismatch(grad_v.view(), expected.second, magnitude.second, tolerance),
            "");
}

/// On each device, by whatever kernels its plan chooses.
class SddmmGradientsOn : public ::testing::TestWithParam<std::string> {};

TEST_P(SddmmGradientsOn, MatchTheReferenceOnOddGraphs) {
  const Device device = testing::device_of(GetParam());
  for (const NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    for (const SddmmShape& shape : sddmm_shapes) {
      SCOPED_TRACE(to_string(shape.function));
      for_precisions(device, [&]<class T>(T) {
        SCOPED_TRACE(to_string(PrecisionOf<T>::value));
        compare_sddmm_backward<T>(named.graph, shape, device);
      });
    }
  }
}

std::vector<std::string> each_device() {
  std::vector<std::string> names = {"chosen/cpu/any"};
  if (num_gpus() > 0) names.push_back(chosen_on_gpu);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SddmmGradientsOn, ::testing::ValuesIn(each_device()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
