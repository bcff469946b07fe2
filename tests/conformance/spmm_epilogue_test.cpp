// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/reference.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/spmm.hpp"

/// What becomes of a reduced row before it is stored, by every kernel of spmm that takes it.
namespace tessera::ops {
namespace {

using testing::NumberKind;

struct Case {
  std::string kernel;
  Graph graph;
  Reduction reduction = Reduction::sum;
  std::int64_t features = 0;
  SpmmEpilogue epilogue;
  std::int64_t margin = 3;
};

std::optional<SpmmPlan> plan_of(const Case& c, Precision precision) {
  if (!testing::takes(c.kernel, c.reduction)) return {};
  SpmmOptions options;
  options.kernel = c.kernel;
  options.reduction = c.reduction;
  options.precision = precision;
  options.features = c.features;
  options.epilogue = c.epilogue;
  options.edge_values_at_run = false;
  options.device = testing::device_of(c.kernel);
  return testing::planned(options.device, [&] { return plan_spmm(c.graph, options); });
}

/// T is how operands are stored, Out how Y is. A kernel that declines the case compares nothing.
template <class T, class Out>
void run_case(const Case& c) {
  const std::optional<SpmmPlan> plan = plan_of(c, PrecisionOf<T>::value);
  if (!plan) return;
  const Graph& graph = c.graph;
  const Device device = testing::device_of(c.kernel);
  const Random random = Random(11, 3, 5);
  const Matrix<T> x =
      testing::random_matrix<T>(graph.num_cols(), c.features, NumberKind::normal, 1);
  const Matrix<T> bias = testing::random_matrix<T>(1, c.features, NumberKind::normal, 2);
  const Matrix<T> residual =
      testing::random_matrix<T>(graph.num_rows(), c.features, NumberKind::normal, 3);
  test::Padded<T> padded_x(x, c.margin), padded_bias(bias, c.margin);
  test::Padded<T> padded_residual(residual, c.margin);
  test::Padded<Out> padded_y(graph.num_rows(), c.features, c.margin);
  for (std::int64_t i = 0; i < graph.num_rows(); ++i) {
    for (std::int64_t j = 0; j < c.features; ++j) {
      padded_y.view()(i, j) = static_cast<Out>(std::numeric_limits<float>::quiet_NaN());
    }
  }
  test::Placed<T> placed_x(padded_x, device), placed_bias(padded_bias, device);
  test::Placed<T> placed_residual(padded_residual, device);
  test::Placed<Out> placed_y(padded_y, device);
  const Matrix<T> scale = testing::random_matrix<T>(1, 1, NumberKind::normal, 4);
  test::Padded<T> padded_scale(scale, c.margin);
  test::Placed<T> placed_scale(padded_scale, device);
  SpmmInputs inputs{placed_x.view()};
  if (c.epilogue.residual_scale) inputs.residual_scale = placed_scale.view();
  if (c.epilogue.bias) inputs.bias = placed_bias.view();
  if (c.epilogue.residual) inputs.residual = placed_residual.view();
  inputs.random = random;
  run(*plan, inputs, {placed_y.view()});
  placed_y.fetch();
  EXPECT_TRUE(padded_y.margins_intact());

  Matrix<double> expected(graph.num_rows(), c.features);
  Matrix<double> magnitude(graph.num_rows(), c.features);
  const Matrix<double> exact_x = test::to_double(x);
  const Matrix<double> exact_bias = test::to_double(bias);
  const Matrix<double> exact_residual = test::to_double(residual);
  reference::spmm(graph, c.reduction, exact_x, {}, expected);
  reference::spmm_magnitude(graph, c.reduction, exact_x, {}, magnitude);
  using View = MatrixView<const double>;
  const double exact_scale = c.epilogue.residual_scale ? static_cast<double>(scale(0, 0)) : 0;
  reference::spmm_epilogue(c.epilogue, c.epilogue.bias ? exact_bias.view() : View{},
                           c.epilogue.residual ? exact_residual.view() : View{}, random, expected,
                           exact_scale);
  // What is added counts for the size of errors, and what is kept grows with it.
  const double kept = c.epilogue.dropout < 1 ? 1 / (1 - c.epilogue.dropout) : 1;
  for (std::int64_t i = 0; i < graph.num_rows(); ++i) {
    for (std::int64_t j = 0; j < c.features; ++j) {
      magnitude(i, j) = kept * (magnitude(i, j) + std::abs(exact_bias(0, j)) +
                                (1 + std::abs(exact_scale)) * std::abs(exact_residual(i, j)));
    }
  }
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<Out>::value);
  tolerance.of_magnitude = PrecisionOf<T>::value == Precision::fp64 ? 1e-14
                           : testing::kernel_info(c.kernel).strict  ? 2e-6
                                                                    : 1e-5;
  EXPECT_EQ(testing::first_mismatch(padded_y.view(), expected, magnitude, tolerance), "");
  // Dropped elements are 0 exactly, and no others: the masks are those of the dense op.
  const Dropout dropout{c.epilogue.dropout, random};
  for (std::int64_t i = 0; i < graph.num_rows() && dropout.active(); ++i) {
    for (std::int64_t j = 0; j < c.features; ++j) {
      const bool falls = dropout.factor(static_cast<std::uint64_t>(i * c.features + j)) == 0;
      if (!falls) continue;
      ASSERT_EQ(static_cast<float>(padded_y.view()(i, j)), 0.0f) << i << ", " << j;
    }
  }
}

/// In every precision that a kernel of the device may have, and with Y in the other size.
void run_in_all_types(const Case& c) {
  const bool on_cpu = testing::device_of(c.kernel).kind == DeviceKind::cpu;
  Case wide = c;
  wide.epilogue.output = Precision::fp32;
  Case narrow = c;
  narrow.epilogue.output = Precision::bf16;
  run_case<float, float>(c);
  run_case<Bfloat16, Bfloat16>(c);
  run_case<Bfloat16, float>(wide);
  run_case<float, Bfloat16>(narrow);
  if (on_cpu) {
    run_case<double, double>(c);
  } else {
    run_case<Float16, Float16>(c);
    run_case<Float16, float>(wide);
    narrow.epilogue.output = Precision::fp16;
    run_case<float, Float16>(narrow);
  }
}

std::vector<SpmmEpilogue> epilogues() {
  SpmmEpilogue bias, residual, scaled, relu, leaky, elu, dropout, all, none;
  bias.bias = true;
  residual.residual = true;
  scaled.residual = scaled.residual_scale = true;
  relu.bias = true;
  relu.activation = Activation::relu;
  leaky.activation = Activation::leaky_relu;
  leaky.slope = 0.2;
  elu.activation = Activation::elu;
  elu.alpha = 0.7;
  dropout.dropout = 0.4;
  all.bias = all.residual = all.residual_scale = true;
  all.activation = Activation::elu;
  all.dropout = 0.5;
  return {none, bias, residual, scaled, relu, leaky, elu, dropout, all};
}

Graph small_graph() {
  return generate::build(generate::Rmat{.scale = 8, .edges = 3000, .seed = 2});
}

class SpmmEpilogueTest : public testing::KernelTest {
 protected:
  bool takes(Reduction reduction) const {
    const bool best = GetParam().find("/best_") != std::string::npos;
    const bool winners = reduction == Reduction::max || reduction == Reduction::min;
    return best == winners || testing::device_of(GetParam()).kind == DeviceKind::cpu;
  }
};

TEST_P(SpmmEpilogueTest, EveryPartAloneAndTogether) {
  const Graph graph = gcn_normalised(small_graph());
  for (const SpmmEpilogue& epilogue : epilogues()) {
    for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max}) {
      if (!takes(reduction)) continue;
      run_in_all_types({GetParam(), graph, reduction, 32, epilogue, 8});
    }
  }
}

TEST_P(SpmmEpilogueTest, OddWidthsAndStrides) {
  const SpmmEpilogue all = epilogues().back();
  for (const std::int64_t features : {1, 3, 7, 17, 40, 64, 100, 130, 136}) {
    for (const std::int64_t margin : {0, 3, 8}) {
      run_in_all_types({GetParam(), small_graph(), Reduction::sum, features, all, margin});
    }
  }
}

/// Weights that are 0 in half of the edges, as dropout leaves them of sparse features.
TEST_P(SpmmEpilogueTest, MostlyZeros) {
  const Graph pattern =
      generate::build(generate::ErdosRenyi{.vertices = 200, .edges = 12000, .seed = 3});
  std::vector<float> values(static_cast<std::size_t>(pattern.num_edges()));
  for (std::size_t e = 0; e < values.size(); ++e) {
    values[e] = e % 2 == 0 ? 0.0f : static_cast<float>(e % 7 + 1) / 4;
  }
  const Graph graph = pattern.with_values(SharedArray<float>(values));
  for (const SpmmEpilogue& epilogue : epilogues()) {
    run_in_all_types({GetParam(), graph, Reduction::sum, 32, epilogue, 0});
  }
}

TEST_P(SpmmEpilogueTest, EmptyRowsAndHubs) {
  const SpmmEpilogue all = epilogues().back();
  for (const testing::NamedGraph& odd : testing::odd_patterns()) {
    SCOPED_TRACE(odd.name);
    for (const Reduction reduction : {Reduction::mean, Reduction::min}) {
      if (!takes(reduction)) continue;
      run_in_all_types({GetParam(), odd.graph, reduction, 24, all, 8});
    }
  }
}

/// dX = A^T dY and a residual, as a layer has it that adds its input to what it gathers.
template <class T>
void run_backward_case(const std::string& kernel, const Graph& graph, Reduction reduction,
                       std::int64_t features, bool is_scaled) {
  SpmmOptions options;
  options.reduction = reduction;
  options.precision = PrecisionOf<T>::value;
  options.features = features;
  options.backward = true;
  options.backward_kernel = kernel;
  options.edge_values_at_run = options.edge_value_gradient = false;
  options.backward_epilogue.residual = true;
  options.backward_epilogue.residual_scale = is_scaled;
  options.device = testing::device_of(kernel);
  const auto plan = testing::planned(options.device, [&] { return plan_spmm(graph, options); });
  if (!plan) return;
  const auto grad_y = testing::random_matrix<T>(graph.num_rows(), features, NumberKind::normal, 1);
  const auto residual =
      testing::random_matrix<T>(graph.num_cols(), features, NumberKind::normal, 2);
  const auto scale = testing::random_matrix<T>(1, 1, NumberKind::normal, 3);
  test::Padded<T> padded_y(grad_y, 8), padded_residual(residual, 8), padded_scale(scale, 0);
  test::Padded<T> padded_x(graph.num_cols(), features, 8);
  test::Placed<T> placed_y(padded_y, options.device), placed_x(padded_x, options.device);
  test::Placed<T> placed_residual(padded_residual, options.device);
  test::Placed<T> placed_scale(padded_scale, options.device);
  SpmmGradInputs inputs{placed_y.view()};
  inputs.residual = placed_residual.view();
  if (is_scaled) inputs.residual_scale = placed_scale.view();
  run_backward(*plan, inputs, {placed_x.view()});
  placed_x.fetch();
  EXPECT_TRUE(padded_x.margins_intact());

  const Matrix<double> exact_y = test::to_double(grad_y);
  Matrix<double> sizes_y = test::to_double(grad_y);
  for (double& value : sizes_y.span()) value = std::abs(value);
  Matrix<double> expected(graph.num_cols(), features), magnitude(graph.num_cols(), features);
  reference::spmm_backward(graph, reduction, exact_y, {}, {}, {}, expected, {});
  reference::spmm_backward(graph, reduction, sizes_y, {}, {}, {}, magnitude, {});
  const double factor = 1 + (is_scaled ? static_cast<double>(scale(0, 0)) : 0);
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double added = factor * static_cast<double>(residual.data()[i]);
    expected.data()[i] += added;
    magnitude.data()[i] += std::abs(added) + std::abs(static_cast<double>(residual.data()[i]));
  }
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  tolerance.of_magnitude = PrecisionOf<T>::value == Precision::fp64 ? 1e-14
                           : testing::kernel_info(kernel).strict    ? 2e-6
                                                                    : 1e-5;
  EXPECT_EQ(testing::first_mismatch(padded_x.view(), expected, magnitude, tolerance), "");
}

TEST_P(SpmmEpilogueTest, ResidualsOfGradients) {
  if (!takes(Reduction::sum)) return;
  const Graph directed = small_graph(), weighted = gcn_normalised(directed);
  for (const std::int64_t features : {7, 32, 64}) {
    for (const bool is_scaled : {false, true}) {
      run_backward_case<float>(GetParam(), directed, Reduction::sum, features, is_scaled);
      run_backward_case<float>(GetParam(), weighted, Reduction::mean, features, is_scaled);
      run_backward_case<Bfloat16>(GetParam(), directed, Reduction::sum, features, is_scaled);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SpmmEpilogueTest,
                         ::testing::ValuesIn(testing::kernel_names("spmm")),
                         testing::kernel_test_name);

TEST(SpmmEpilogueCheckTest, WrongNumbersTypesAndOperandsAreErrors) {
  const Graph graph = small_graph();
  SpmmOptions options;
  options.features = 4;
  options.epilogue.dropout = 1.5;
  EXPECT_THROW(plan_spmm(graph, options), Error);
  options.epilogue = {};
  options.epilogue.slope = std::numeric_limits<double>::infinity();
  EXPECT_THROW(plan_spmm(graph, options), Error);
  options.epilogue = {};
  options.epilogue.output = Precision::fp64;
  EXPECT_THROW(plan_spmm(graph, options), Error);
  options.epilogue = {};
  options.epilogue.bias = true;
  const SpmmPlan plan = plan_spmm(graph, options);
  Matrix<float> x(graph.num_cols(), 4, 1.0f), y(graph.num_rows(), 4), bias(1, 4, 1.0f);
  EXPECT_THROW(run(plan, {x.view()}, {y.view()}), Error);
  SpmmInputs inputs{x.view()};
  inputs.bias = bias.view();
  run(plan, inputs, {y.view()});
  inputs.residual = x.view();
  EXPECT_THROW(run(plan, inputs, {y.view()}), Error);
  options.epilogue = {};
  options.epilogue.residual_scale = true;
  EXPECT_THROW(plan_spmm(graph, options), Error);
  options.epilogue = {};
  options.backward_epilogue.bias = true;
  EXPECT_THROW(plan_spmm(graph, options), Error);
  options.backward_epilogue = {};
  options.backward_epilogue.residual = true;
  options.reduction = Reduction::max;
  EXPECT_THROW(plan_spmm(graph, options), Error);
}

}  // namespace
}  // namespace tessera::ops
