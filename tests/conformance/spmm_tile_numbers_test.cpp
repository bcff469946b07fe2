// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/reference.hpp"
#include "ops/spmm/row_order.hpp"
#include "support/error_measure.hpp"
#include "support/matrices.hpp"
#include "support/tile_products.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"

/// Kernels on tiles with numbers that are large, many, or not finite.
namespace tessera::ops {
namespace {

class SpmmTileNumbers : public testing::KernelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SpmmTileNumbers);

/// The largest numbers of each precision are numbers, not infinity.
TEST_P(SpmmTileNumbers, KeepTheLargestNumbers) {
  const auto check = [&]<class T>(T, float largest) {
    SCOPED_TRACE(to_string(PrecisionOf<T>::value));
    constexpr VertexId n = 65;
    std::vector<VertexId> ids(static_cast<std::size_t>(n));
    for (VertexId i = 0; i < n; ++i) ids[static_cast<std::size_t>(i)] = i;
    const Graph pattern = from_coo(n, n, ids, ids);
    Matrix<T> x(n, 64);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      x.data()[i] = static_cast<T>(i % 3 == 0 ? -largest : largest);
    }
    const auto ones = SharedArray<float>(std::vector<float>(static_cast<std::size_t>(n), 1.0f));
    for (const Graph& graph : {pattern, pattern.with_values(ones)}) {
      const Matrix<T> y = product<T>(GetParam(), problem_of<T>(graph, 64, SpmmPass::forward), x);
      if (y.rows() == 0) continue;
      const Matrix<double> expected = test::to_double(x);
      const Matrix<double> magnitude(n, 64, static_cast<double>(largest));
      EXPECT_EQ(testing::first_mismatch(y.view(), expected, magnitude, {1e-5}), "");
    }
  };
  // Two planes may be 2^-17 too large.
  const bool strict = testing::kernel_info(GetParam()).strict;
  check(float{}, strict ? std::numeric_limits<float>::max() : 3.4e38f);
  check(Bfloat16{}, 3.38e38f);
  check(Float16{}, 65504.0f);
}

/// What does not fit is infinite, never a wrong number.
TEST_P(SpmmTileNumbers, TurnSumsThatAreTooLargeIntoInfinity) {
  const auto check = [&]<class T>(T, float large) {
    const Graph graph = testing::hub_graph(70, 40, 36);
    const Matrix<T> x(40, 64, static_cast<T>(large));
    const Matrix<T> y = product<T>(GetParam(), problem_of<T>(graph, 64, SpmmPass::forward), x);
    if (y.rows() == 0) return;
    EXPECT_EQ(static_cast<float>(y(0, 0)), std::numeric_limits<float>::infinity())
        << to_string(PrecisionOf<T>::value);
  };
  check(float{}, 2e38f);
  check(Bfloat16{}, 2e38f);
  check(Float16{}, 6e4f);
}

/// Windows so many that none is cut, and so long that what tensor cores lose when they add up
/// counts. The first row of each uses every column, some others every sixteenth.
Graph many_long_windows(VertexId windows, VertexId cols) {
  constexpr VertexId height = 256, sparse_rows = 15, apart = 16;
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> indices;
  for (VertexId row = 0; row < windows * height; ++row) {
    const VertexId in_window = row % height;
    if (in_window <= sparse_rows) {
      for (VertexId col = in_window; col < cols; col += in_window == 0 ? 1 : apart) {
        indices.push_back(col);
      }
    }
    offsets.push_back(static_cast<EdgeOffset>(indices.size()));
  }
  return Graph(windows * height, cols, SharedArray<EdgeOffset>(std::move(offsets)),
               SharedArray<VertexId>(std::move(indices)));
}

TEST_P(SpmmTileNumbers, HoldTheirBoundOnLongSumsOfOneSign) {
  constexpr VertexId cols = 8192, windows = 600;
  constexpr std::int64_t features = 16;
  const auto valued = [](const Graph& graph) {
    return graph.with_values(SharedArray<float>(
        std::vector<float>(static_cast<std::size_t>(graph.num_edges()), 1.0f / 3)));
  };
  const auto check = [&]<class T>(T, const Graph& graph, const Graph& one_window) {
    SCOPED_TRACE(to_string(PrecisionOf<T>::value));
    const Random random(41);
    Matrix<T> x(cols, features);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      // Numbers of many magnitudes: sums of like ones are exact for a long while.
      const double exponent = 8 * random.uniform(static_cast<std::uint64_t>(i)) - 4;
      x.data()[i] = static_cast<T>(static_cast<float>(std::exp2(exponent)));
    }
    const Matrix<T> y =
        product<T>(GetParam(), problem_of<T>(graph, features, SpmmPass::forward), x);
    if (y.rows() == 0) return;
    Matrix<double> expected(one_window.num_rows(), features);
    reference::spmm(one_window, Reduction::sum, test::to_double(x), {}, expected);
    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    if (!testing::kernel_info(GetParam()).strict) tolerance.of_magnitude = 1e-5;
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      for (std::int64_t f = 0; f < features; ++f) {
        const double want = expected(row % one_window.num_rows(), f);
        const auto got = static_cast<double>(y(row, f));
        ASSERT_TRUE(testing::close(got, want, want, tolerance))
            << "row " << row << ", feature " << f << " is " << got << ", not " << want << ": "
            << std::abs(got - want) / want;
      }
    }
  };
  const Graph graph = many_long_windows(windows, cols);
  const Graph one_window = many_long_windows(1, cols);
  check(float{}, graph, one_window);
  check(Bfloat16{}, graph, one_window);
  check(Float16{}, graph, one_window);
  check(float{}, valued(graph), valued(one_window));
  check(Bfloat16{}, valued(graph), valued(one_window));
}

TEST_P(SpmmTileNumbers, GiveTheSameBitsTwice) {
  const Graph pattern = testing::hub_graph(900, 7000, 15);
  const Graph scaled =
      testing::with_all_weights({"", pattern}, testing::NumberKind::normal)[2].graph;
  const auto check = [&]<class T>(T, const Graph& graph) {
    Matrix<T> x(graph.num_cols(), 96);
    const auto values = testing::random_values(x.size(), testing::NumberKind::normal, 16);
    for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<T>(values[i]);
    const SpmmProblem problem = problem_of<T>(graph, 96, SpmmPass::forward);
    const Matrix<T> y = product<T>(GetParam(), problem, x);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(test::same_bits(y, product<T>(GetParam(), problem, x)));
    }
  };
  check(float{}, scaled);
  check(Bfloat16{}, pattern);
  check(Bfloat16{}, with_integer_values(pattern));
}

/// Where tf32 is allowed, fp32 features are taken in planes all the same, which are more exact.
TEST_P(SpmmTileNumbers, TakeTf32AsFp32) {
  const Graph graph = testing::random_graph(300, 400, 5000, 18, false);
  Matrix<float> x(graph.num_cols(), 72);
  const auto values = testing::random_values(x.size(), testing::NumberKind::normal, 19);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(values[i]);
  SpmmProblem problem = problem_of<float>(graph, 72, SpmmPass::forward);
  const Matrix<float> y = product<float>(GetParam(), problem, x);
  problem.precision = Precision::tf32;
  EXPECT_TRUE(test::same_bits(y, product<float>(GetParam(), problem, x)));
}

/// The window of each row: of the tallest kernel where rows are in their order, and that of the
/// plan's own order where it has one.
std::vector<VertexId> windows_of_rows(const std::string& kernel, const SpmmProblem& problem) {
  const VertexId num_rows = problem.graph.num_rows();
  std::vector<VertexId> windows(static_cast<std::size_t>(num_rows));
  const bool ordered = kernel.find("/ordered") != std::string::npos;
  const VertexId height = ordered && kernel.find("_64") != std::string::npos ? 64 : 256;
  const auto order = ordered ? row_order(problem) : nullptr;
  for (VertexId i = 0; i < num_rows; ++i) {
    const VertexId row = ordered ? order->rows[i] : i;
    windows[static_cast<std::size_t>(row)] = i / height;
  }
  return windows;
}

/// Another column of some row that uses `column`.
VertexId neighbour_beside(const Graph& graph, VertexId column) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    const auto columns = graph.neighbours(row);
    if (columns.size() < 2 || !std::binary_search(columns.begin(), columns.end(), column)) continue;
    return columns.front() == column ? columns.back() : columns.front();
  }
  ADD_FAILURE() << "no row has column " << column << " and another";
  return column;
}

/// The sum of one infinity and the other is not a number.
TEST_P(SpmmTileNumbers, KeepWhatIsNotFiniteInItsWindow) {
  const Graph graph = testing::random_graph(1024, 1024, 6000, 17, false);
  constexpr VertexId spoiled = 77;
  const VertexId opposite = neighbour_beside(graph, spoiled);
  const auto check = [&]<class T>(T) {
    Matrix<T> x = integers<T>(graph.num_cols(), 64, 18);
    x(spoiled, 5) = static_cast<T>(std::numeric_limits<float>::infinity());
    x(opposite, 5) = static_cast<T>(-std::numeric_limits<float>::infinity());
    x(spoiled, 6) = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    const SpmmProblem problem = problem_of<T>(graph, 64, SpmmPass::forward);
    const Matrix<T> y = product<T>(GetParam(), problem, x);
    if (y.rows() == 0) return;
    Matrix<double> expected(graph.num_rows(), 64);
    reference::spmm(graph, Reduction::sum, test::to_double(x), {}, expected);
    const std::vector<VertexId> windows = windows_of_rows(GetParam(), problem);
    std::set<VertexId> spoiled_windows;
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      const auto sources = graph.neighbours(row);
      const bool uses = std::binary_search(sources.begin(), sources.end(), spoiled) ||
                        std::binary_search(sources.begin(), sources.end(), opposite);
      if (uses) spoiled_windows.insert(windows[static_cast<std::size_t>(row)]);
    }
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      const bool near = spoiled_windows.count(windows[static_cast<std::size_t>(row)]) > 0;
      for (std::int64_t f = 0; f < 64; ++f) {
        const auto value = static_cast<double>(y(row, f));
        if (std::isnan(value) && near && (f == 5 || f == 6)) continue;
        ASSERT_TRUE(testing::close(value, testing::rounded_to<T>(expected(row, f)), 0, {}))
            << "row " << row << ", feature " << f << " is " << value;
      }
    }
  };
  check(float{});
  check(Bfloat16{});
  check(Float16{});
}

TEST_P(SpmmTileNumbers, HoldTheScalesOfColumnsToSeventeenBits) {
  const Graph graph =
      testing::with_all_weights({"", testing::random_graph(300, 280, 4000, 19, false)},
                                testing::NumberKind::normal)[2]
          .graph;
  const auto check = [&]<class T>(T) {
    Matrix<T> x(graph.num_cols(), 64);
    const auto values = testing::random_values(x.size(), testing::NumberKind::normal, 20);
    for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<T>(values[i]);
    const Matrix<T> y = product<T>(GetParam(), problem_of<T>(graph, 64, SpmmPass::forward), x);
    if (y.rows() == 0) return;
    Matrix<double> expected(graph.num_rows(), 64);
    Matrix<double> magnitude(graph.num_rows(), 64);
    reference::spmm(graph, Reduction::sum, test::to_double(x), {}, expected);
    reference::spmm_magnitude(graph, Reduction::sum, test::to_double(x), {}, magnitude);
    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    if (!testing::kernel_info(GetParam()).strict) tolerance.of_magnitude = 1e-5;
    EXPECT_EQ(testing::first_mismatch(y.view(), expected, magnitude, tolerance), "")
        << to_string(PrecisionOf<T>::value);
  };
  check(float{});
  check(Bfloat16{});
  check(Float16{});
}

INSTANTIATE_TEST_SUITE_P(All, SpmmTileNumbers, ::testing::ValuesIn(tile_kernel_names()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
