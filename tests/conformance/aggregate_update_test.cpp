// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/aggregate_update.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/aggregate_update/reference.hpp"
#include "support/comparisons.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/error_measure.hpp"
#include "support/finite_differences.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/update_case.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/transform.hpp"

/// Sums and the dense layer after them, by every kernel, against the reference.
namespace tessera::ops {
namespace {

class AggregateUpdateKernels : public testing::KernelTest {
 protected:
  Device device() const { return testing::device_of(GetParam()); }

  std::optional<AggregateUpdatePlan> plan_of(const Graph& graph, AggregateUpdateOptions& options,
                                             Precision precision) const {
    options.kernel = options.backward_kernel = GetParam();
    options.device = device();
    options.precision = precision;
    options.backward = true;
    return testing::planned(options.device, [&] { return plan_aggregate_update(graph, options); });
  }

  template <class T>
  void check(const Graph& graph, AggregateUpdateOptions options, std::int64_t margin) const {
    const auto plan = plan_of(graph, options, PrecisionOf<T>::value);
    if (!plan) return;
    SCOPED_TRACE(::testing::Message() << options.in << " to " << options.out << " margin " << margin
                                      << " " << to_string(options.precision));
    UpdateCase<T> c(graph, options);
    check_forward(*plan, c, margin);
    check_backward(*plan, c, margin);
  }

  void check_types(const Graph& graph, const AggregateUpdateOptions& options,
                   std::int64_t margin) const {
    check<float>(graph, options, margin);
    check<Bfloat16>(graph, options, margin);
    if (device().kind == DeviceKind::cpu) {
      check<double>(graph, options, margin);
    } else {
      check<Float16>(graph, options, margin);
    }
  }
};

TEST_P(AggregateUpdateKernels, OddGraphsInAllForms) {
  must_compare();
  for (const testing::NamedGraph& odd : testing::odd_patterns()) {
    SCOPED_TRACE(odd.name);
    for (const AggregateUpdateOptions& options : all_forms(odd.graph, 17, 12)) {
      check_types(odd.graph, options, 3);
    }
    // Rows on boundaries.
    for (const AggregateUpdateOptions& options : all_forms(odd.graph, 16, 24)) {
      check_types(odd.graph, options, 0);
    }
  }
}

TEST_P(AggregateUpdateKernels, EveryKindOfWeights) {
  const testing::NamedGraph square{"square", testing::random_graph(150, 150, 900, 31, false)};
  const testing::NamedGraph wide{"wide", testing::random_graph(40, 70, 300, 32, false)};
  for (const testing::NamedGraph& base : {square, wide}) {
    for (const auto& weighted : testing::with_all_weights(base, testing::NumberKind::normal)) {
      SCOPED_TRACE(weighted.name);
      for (const AggregateUpdateOptions& options : all_forms(weighted.graph, 24, 40)) {
        check_types(weighted.graph, options, 8);
      }
    }
  }
}

TEST_P(AggregateUpdateKernels, AnyWidth) {
  const Graph graph = testing::random_graph(130, 130, 500, 33, false);
  const std::pair<std::int64_t, std::int64_t> shapes[] = {
      {0, 5},   {5, 0},   {1, 1},    {3, 33},    {16, 16},  {31, 32}, {32, 64}, {33, 65},
      {64, 64}, {96, 96}, {100, 97}, {128, 128}, {50, 121}, {250, 7}, {7, 250}};
  for (const auto& [in, out] : shapes) {
    for (const std::int64_t margin : {0, 3}) {
      for (const AggregateUpdateOptions& options : all_forms(graph, in, out)) {
        check<float>(graph, options, margin);
        check<Bfloat16>(graph, options, margin);
      }
    }
  }
}

/// Rows of X that fill 16 bytes, as windows want them, and rows of Y that may not.
TEST_P(AggregateUpdateKernels, WholeUnitsToAnyWidth) {
  const Graph graph = testing::random_graph(500, 500, 6000, 39, false);
  const std::pair<std::int64_t, std::int64_t> shapes[] = {
      {8, 12}, {24, 1}, {40, 20}, {48, 36}, {56, 128}, {64, 96}, {72, 100}, {80, 8}, {112, 60}};
  for (const auto& [in, out] : shapes) {
    for (const std::int64_t margin : {0, 4, 8}) {
      for (const AggregateUpdateOptions& options : all_forms(graph, in, out)) {
        check<Bfloat16>(graph, options, margin);
      }
    }
  }
}

/// So many columns that windows are summed in stretches, none of them cut.
TEST_P(AggregateUpdateKernels, WindowsOfThousandsOfColumns) {
  constexpr VertexId windows = 300, columns = 4500;
  std::vector<VertexId> sources, targets;
  for (VertexId window = 0; window < windows; ++window) {
    for (VertexId column = 0; column < columns; ++column) {
      sources.push_back(column);
      targets.push_back(window * 128 + (column + window) % 128);
    }
  }
  const Graph graph = from_coo(windows * 128, columns, targets, sources);
  AggregateUpdateOptions options = widths(16, 8);
  options.keep_aggregated = true;
  check<Bfloat16>(graph, options, 0);
}

/// Kernels may take the rows themselves as neighbours where no row is its own neighbour already.
TEST_P(AggregateUpdateKernels, OwnFeaturesWithAndWithoutLoops) {
  const Graph without = without_self_loops(testing::random_graph(300, 300, 2000, 38, false));
  std::vector<VertexId> sources, targets;
  for (VertexId row = 0; row < without.num_rows(); ++row) {
    if (row == 170) sources.push_back(row), targets.push_back(row);
    for (EdgeOffset k = without.row_offsets()[row]; k < without.row_offsets()[row + 1]; ++k) {
      sources.push_back(without.col_indices()[k]);
      targets.push_back(row);
    }
  }
  const Graph with_one = from_edges(without.num_rows(), sources, targets);
  ASSERT_EQ(with_one.num_edges(), without.num_edges() + 1);
  for (const Graph& graph : {without, with_one, with_self_loops(without)}) {
    AggregateUpdateOptions options = widths(64, 96);
    options.self = options.keep_aggregated = true;
    check<float>(graph, options, 0);
    check<Bfloat16>(graph, options, 0);
  }
}

TEST_P(AggregateUpdateKernels, RowsAroundTheLongestOfAWindow) {
  std::vector<VertexId> sources, targets;
  constexpr VertexId vertices = 3000;
  const VertexId degrees[] = {0, 1, 31, 32, 33, 64, 127, 128, 129, 500, 2999};
  VertexId target = 0;
  for (const VertexId degree : degrees) {
    for (VertexId k = 0; k < degree; ++k) {
      sources.push_back(k);
      targets.push_back(target);
    }
    target += 13;
  }
  const Graph graph = from_edges(vertices, sources, targets);
  for (const AggregateUpdateOptions& options : all_forms(graph, 20, 36)) {
    check<float>(graph, options, 0);
    check<Bfloat16>(graph, options, 0);
  }
}

TEST_P(AggregateUpdateKernels, IntegersAreExact) {
  const Graph graph = testing::random_graph(200, 200, 1500, 34, false);
  AggregateUpdateOptions options = widths(48, 80);
  options.self = true;
  const auto plan = plan_of(graph, options, Precision::fp32);
  if (!plan) return;
  const auto integers = [](std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    Matrix<float> drawn(rows, cols);
    const auto values = testing::random_values(rows * cols, testing::NumberKind::integer, seed);
    for (std::int64_t i = 0; i < drawn.size(); ++i) drawn.data()[i] = values[i];
    return drawn;
  };
  const Matrix<float> x = integers(200, 48, 1), weight = integers(80, 48, 2);
  DeviceMatrix<float> on_x(x, device()), on_weight(weight, device());
  DeviceMatrix<float> y(200, 80, device());
  run(*plan, {on_x, on_weight}, {y}, {}, {}, test::workspace_on(device()));
  Matrix<double> expected(200, 80);
  reference::aggregate_update(graph, options, {to_double(x).view(), to_double(weight).view()},
                              expected);
  const Matrix<float> got = y.values();
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(static_cast<double>(got.data()[i]), expected.data()[i]) << i;
  }
}

TEST_P(AggregateUpdateKernels, WhatIsNotFiniteStaysWithItsRows) {
  const Graph graph = testing::random_graph(300, 300, 900, 35, false);
  AggregateUpdateOptions options = widths(40, 50);
  options.self = true;
  options.exact_nonfinite = true;
  const auto plan = plan_of(graph, options, Precision::fp32);
  if (!plan) return;
  constexpr float inf = std::numeric_limits<float>::infinity();
  Matrix<float> x = normal_matrix<float>(300, 40, 1);
  x(7, 3) = inf;
  x(7, 39) = -inf;
  x(150, 0) = std::numeric_limits<float>::quiet_NaN();
  x(299, 20) = 3e38f;
  const Matrix<float> weight = normal_matrix<float>(50, 40, 2);
  DeviceMatrix<float> on_x(x, device()), on_weight(weight, device()), y(300, 50, device());
  run(*plan, {on_x, on_weight}, {y}, {}, {}, test::workspace_on(device()));
  Matrix<double> expected(300, 50);
  reference::aggregate_update(graph, options, {to_double(x).view(), to_double(weight).view()},
                              expected);
  const Matrix<float> got = y.values();
  for (std::int64_t i = 0; i < got.rows(); ++i) {
    for (std::int64_t j = 0; j < got.cols(); ++j) {
      ASSERT_EQ(std::isnan(got(i, j)), std::isnan(expected(i, j))) << i << ", " << j;
      const bool fits = std::abs(expected(i, j)) < 3e38;
      if (fits) {
        ASSERT_TRUE(std::isfinite(got(i, j))) << i << ", " << j;
      } else if (std::isinf(expected(i, j))) {
        ASSERT_EQ(static_cast<double>(got(i, j)), expected(i, j)) << i << ", " << j;
      }
    }
  }
}

/// Where fp32 holds no sum it is infinite with its sign, and the largest numbers are not.
TEST_P(AggregateUpdateKernels, SumsOfTheLargestNumbers) {
  constexpr VertexId vertices = 300;
  std::vector<VertexId> sources = {1, 2, 1}, targets = {0, 0, 1};
  for (VertexId i = 2; i < vertices; ++i) {
    sources.push_back(i - 2);
    targets.push_back(i);
  }
  const Graph graph = from_edges(vertices, sources, targets);
  const auto check_largest = [&]<class T>(float largest) {
    AggregateUpdateOptions options = widths(64, 48);
    const auto plan = plan_of(graph, options, PrecisionOf<T>::value);
    if (!plan) return;
    Matrix<T> x = normal_matrix<T>(vertices, 64, 1), weight = normal_matrix<T>(48, 64, 2);
    for (const std::int64_t vertex : {1, 2}) x(vertex, 5) = static_cast<T>(largest);
    const auto factor = [](std::int64_t col) { return col % 2 == 0 ? 0.25f : -0.25f; };
    for (std::int64_t col = 0; col < 48; ++col) weight(col, 5) = static_cast<T>(factor(col));
    DeviceMatrix<T> on_x(x, device()), on_weight(weight, device()), y(vertices, 48, device());
    run(*plan, {on_x, on_weight}, {y}, {}, {}, test::workspace_on(device()));
    const Matrix<T> got = y.values();
    for (std::int64_t col = 0; col < 48; ++col) {
      const float expected = largest * factor(col);
      EXPECT_GE(static_cast<float>(got(0, col)) / expected, 1.9f) << col;
      EXPECT_NEAR(static_cast<float>(got(1, col)) / expected, 1, 0.01) << col;
    }
  };
  check_largest.operator()<float>(3.4e38f);
  check_largest.operator()<Bfloat16>(3.38e38f);
}

TEST_P(AggregateUpdateKernels, StrictSumsAreAsExactAsFp32) {
  const Graph graph = testing::random_graph(2000, 2000, 40000, 36, false);
  AggregateUpdateOptions options = widths(64, 64);
  options.strict = true;
  check<float>(graph, options, 0);
}

TEST_P(AggregateUpdateKernels, SameBitsForAnyNumberOfThreads) {
  if (device().kind != DeviceKind::cpu) {
    GTEST_SKIP() << "threads are the CPU's, whose cases run everywhere";
  }
  const Graph graph = testing::random_graph(900, 900, 9000, 37, false);
  AggregateUpdateOptions options = widths(33, 20);
  options.self = true;
  const auto plan = plan_of(graph, options, Precision::fp32);
  const Matrix<float> x = normal_matrix<float>(900, 33, 1),
                      weight = normal_matrix<float>(20, 33, 2);
  const auto run_with = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    Matrix<float> y(900, 20);
    run(*plan, {x, weight}, {y});
    set_num_threads(before);
    return y;
  };
  const Matrix<float> once = run_with(1);
  for (const int threads : {2, 3}) {
    EXPECT_TRUE(test::same_bits(once, run_with(threads))) << threads;
  }
}

TEST(AggregateUpdateConformance, GradientAgreesWithDifferences) {
  const Graph graph = testing::random_graph(9, 9, 30, 38, true);
  AggregateUpdateOptions options = widths(4, 3);
  options.precision = Precision::fp64;
  options.reduction = Reduction::mean;
  options.self = options.self_scale = options.root = options.bias = true;
  options.keep_aggregated = options.backward = true;
  const auto plan = plan_aggregate_update(graph, options);
  auto x = normal_matrix<double>(9, 4, 1), weight = normal_matrix<double>(3, 4, 2);
  auto root = normal_matrix<double>(3, 4, 3), bias = normal_matrix<double>(1, 3, 4);
  const auto scale = normal_matrix<double>(1, 1, 5), slopes = normal_matrix<double>(9, 3, 6);
  Matrix<double> y(9, 3), kept(9, 4), grad_x(9, 4), grad_weight(3, 4), grad_root(3, 4);
  Matrix<double> grad_bias(1, 3);
  const auto loss = [&] {
    run(plan, {x, weight, root, scale, bias}, {y, kept});
    return testing::weighted_sum(y, slopes);
  };
  loss();
  run_backward(plan, {slopes, weight, root, scale, kept, x},
               {grad_x, grad_weight, grad_root, grad_bias});
  EXPECT_EQ(testing::gradient_mismatch(x, grad_x, loss), "");
  EXPECT_EQ(testing::gradient_mismatch(weight, grad_weight, loss), "");
  EXPECT_EQ(testing::gradient_mismatch(root, grad_root, loss), "");
  EXPECT_EQ(testing::gradient_mismatch(bias, grad_bias, loss), "");
}

template <class Body>
std::string problem_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

void expect_problem(const std::string& found, const std::string& word) {
  EXPECT_NE(found.find(word), std::string::npos) << found;
}

TEST(AggregateUpdateConformance, SaysWhatDoesNotFit) {
  const Graph wide = testing::random_graph(5, 7, 12, 39, false);
  const Graph square = testing::random_graph(6, 6, 12, 40, false);
  AggregateUpdateOptions options = widths(3, 2);
  options.self = true;
  expect_problem(problem_of([&] { plan_aggregate_update(wide, options); }), "rectangular");
  options.self = false;
  options.self_scale = true;
  expect_problem(problem_of([&] { plan_aggregate_update(square, options); }), "self_scale");
  options.self_scale = false;
  options.reduction = Reduction::max;
  expect_problem(problem_of([&] { plan_aggregate_update(square, options); }), "commute");
  options.reduction = Reduction::sum;
  const auto plan = plan_aggregate_update(square, options);
  Matrix<float> x(6, 3, 0.0f), weight(2, 3, 0.0f), y(6, 2), bias(1, 2, 0.0f);
  expect_problem(problem_of([&] { run(plan, {x, x}, {y}); }), "weight");
  expect_problem(problem_of([&] { run(plan, {x, weight, {}, {}, bias}, {y}); }), "takes no bias");
  expect_problem(problem_of([&] { run_backward(plan, {y, weight}, {}); }), "backward");
}

TEST(AggregateUpdateConformance, SaysHowItsStagesWereChosen) {
  const Graph graph = testing::random_graph(50, 50, 200, 41, false);
  AggregateUpdateOptions options = widths(8, 4);
  options.backward = true;
  const Explanation explanation = plan_aggregate_update(graph, options).explain();
  EXPECT_NE(explanation.summary.find("aggregate_update/cpu/staged"), std::string::npos);
  EXPECT_NE(find_child(explanation, "sums"), nullptr);
  const Explanation* const backward = find_child(explanation, "backward");
  ASSERT_NE(backward, nullptr);
  EXPECT_NE(find_child(*backward, "sums"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, AggregateUpdateKernels,
                         ::testing::ValuesIn(testing::kernel_names("aggregate_update")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
