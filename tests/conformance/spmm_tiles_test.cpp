// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/kernel.hpp"
#include "ops/spmm/reference.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/spmm.hpp"

/// Kernels on tiles where tiles begin and end: rows and columns at multiples of steps, strips,
/// tiles and windows, one less, one more. The numbers are integers, so that every result is exact
/// and a wrong one says where it stands.
namespace tessera::ops {
namespace {

std::vector<std::string> tile_kernel_names() {
  std::vector<std::string> names;
  for (const std::string& name : testing::kernel_names("spmm")) {
    if (!testing::kernel_info(name).exact_nonfinite) names.push_back(name);
  }
  return names;
}

const SpmmKernel& kernel_named(const std::string& name) {
  for (const SpmmKernel& kernel : spmm_kernels()) {
    if (kernel.info.name == name) return kernel;
  }
  throw std::runtime_error("no kernel " + name);
}

template <class T>
Matrix<T> integers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return testing::random_matrix<T>(rows, cols, testing::NumberKind::integer, seed);
}

/// Runs the kernel itself, so that a backward pass needs no other op. Returns Y, or nothing where
/// the kernel does not take the problem.
template <class T>
Matrix<T> product(const std::string& name, const SpmmProblem& problem, const Matrix<T>& x,
                  const Matrix<T>& edge_values = {}) {
  const SpmmKernel& kernel = kernel_named(name);
  if (!kernel.why_not(problem).empty()) return {};
  const bool forward = problem.pass == SpmmPass::forward;
  const VertexId rows = forward ? problem.graph.num_rows() : problem.graph.num_cols();
  // A margin of 8 keeps rows on 16-byte boundaries.
  test::Padded<T> padded_x(x, 8);
  test::Padded<T> padded_y(rows, x.cols(), 8);
  test::Padded<T> padded_values(edge_values, 1);
  test::Placed<T> placed_x(padded_x, problem.device);
  test::Placed<T> placed_values(padded_values, problem.device);
  test::Placed<T> placed_y(padded_y, problem.device);
  SpmmCall call;
  call.x = placed_x.view();
  call.y = placed_y.view();
  if (edge_values.rows() > 0) call.edge_values = placed_values.view();
  kernel.prepare(problem)->run(call, {});
  placed_y.fetch();
  EXPECT_TRUE(padded_y.margins_intact());
  Matrix<T> y(rows, x.cols());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < x.cols(); ++j) y(i, j) = padded_y.view()(i, j);
  }
  return y;
}

template <class T>
SpmmProblem problem_of(const Graph& graph, std::int64_t features, SpmmPass pass) {
  SpmmProblem problem;
  problem.graph = graph;
  problem.precision = PrecisionOf<T>::value;
  problem.features = features;
  problem.pass = pass;
  problem.device = {DeviceKind::cuda, 0};
  return problem;
}

template <class T>
void expect_exact(const std::string& name, const Graph& graph, std::int64_t features,
                  SpmmPass pass = SpmmPass::forward) {
  SCOPED_TRACE(to_string(PrecisionOf<T>::value));
  SCOPED_TRACE(features);
  const Graph multiplied = pass == SpmmPass::forward ? graph : transposed(graph);
  const Matrix<T> x = integers<T>(multiplied.num_cols(), features, 5);
  const Matrix<T> y = product<T>(name, problem_of<T>(graph, features, pass), x);
  if (y.rows() != multiplied.num_rows() || y.cols() != features) return;
  Matrix<double> expected(multiplied.num_rows(), features);
  reference::spmm(multiplied, Reduction::sum, test::to_double(x), {}, expected);
  for (double& value : expected.span()) value = testing::rounded_to<T>(value);
  EXPECT_EQ(testing::first_mismatch(y.view(), expected, expected, {}), "");
}

/// Values that come with the run, whatever the graph has.
template <class T>
void expect_exact_with_values_of_runs(const std::string& name, const Graph& graph,
                                      std::int64_t features, SpmmPass pass) {
  SCOPED_TRACE(to_string(PrecisionOf<T>::value));
  const Matrix<T> values = integers<T>(graph.num_edges(), 1, 6);
  std::vector<float> wide(static_cast<std::size_t>(graph.num_edges()));
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<float>(values.data()[i]);
  const Graph valued = graph.with_values(SharedArray<float>(std::move(wide)));
  const Graph multiplied = pass == SpmmPass::forward ? valued : transposed(valued);
  const Matrix<T> x = integers<T>(multiplied.num_cols(), features, 5);
  SpmmProblem problem = problem_of<T>(graph, features, pass);
  problem.edge_values_expected = true;
  const Matrix<T> y = product<T>(name, problem, x, values);
  if (y.rows() != multiplied.num_rows() || y.cols() != features) return;
  Matrix<double> expected(multiplied.num_rows(), features);
  reference::spmm(multiplied, Reduction::sum, test::to_double(x), {}, expected);
  for (double& value : expected.span()) value = testing::rounded_to<T>(value);
  EXPECT_EQ(testing::first_mismatch(y.view(), expected, expected, {}), "");
}

Graph with_integer_values(const Graph& graph) {
  std::vector<float> values(static_cast<std::size_t>(graph.num_edges()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0f;
  return graph.with_values(SharedArray<float>(std::move(values)));
}

class SpmmTileKernels : public ::testing::TestWithParam<std::string> {
 protected:
  /// Of the pattern, and with values; a kernel takes one or the other.
  void expect_exact_in_all_precisions(const Graph& pattern, std::int64_t features,
                                      SpmmPass pass = SpmmPass::forward) {
    for (const Graph& graph : {pattern, with_integer_values(pattern)}) {
      expect_exact<float>(GetParam(), graph, features, pass);
      expect_exact<Bfloat16>(GetParam(), graph, features, pass);
      expect_exact<Float16>(GetParam(), graph, features, pass);
    }
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SpmmTileKernels);

TEST_P(SpmmTileKernels, CopyWithTheIdentity) {
  for (const VertexId n : {1, 8, 16, 17, 64, 65, 200}) {
    SCOPED_TRACE(n);
    std::vector<VertexId> ids(static_cast<std::size_t>(n));
    for (VertexId i = 0; i < n; ++i) ids[static_cast<std::size_t>(i)] = i;
    for (const std::int64_t features : {8, 32, 64, 128}) {
      expect_exact_in_all_precisions(from_coo(n, n, ids, ids), features);
    }
  }
}

TEST_P(SpmmTileKernels, AreExactAtTheEdgesOfWindows) {
  for (const VertexId rows : {63, 64, 65, 127, 128, 129, 255, 256, 257, 520}) {
    SCOPED_TRACE(rows);
    const Graph graph = testing::random_graph(rows, 300, 6 * rows, 7, false);
    for (const std::int64_t features : {32, 128}) expect_exact_in_all_precisions(graph, features);
  }
}

TEST_P(SpmmTileKernels, AreExactAtTheEdgesOfTiles) {
  for (const VertexId cols : {15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 193}) {
    SCOPED_TRACE(cols);
    // The first row uses every column: exactly so many are gathered.
    const Graph graph = testing::hub_graph(70, cols, 8);
    for (const std::int64_t features : {24, 64, 136}) {
      expect_exact_in_all_precisions(graph, features);
    }
  }
}

TEST_P(SpmmTileKernels, AreExactOnEveryWidth) {
  const Graph graph = testing::random_graph(150, 170, 1500, 9, false);
  for (const std::int64_t features :
       {1, 4, 7, 8, 12, 16, 24, 32, 33, 40, 63, 64, 65, 72, 96, 128, 129, 136, 256, 320}) {
    expect_exact_in_all_precisions(graph, features);
  }
}

TEST_P(SpmmTileKernels, AreExactWhereWindowsAreCut) {
  // More steps than any policy keeps whole; empty windows before and after.
  Graph graph = testing::hub_graph(500, 9000, 10);
  for (const std::int64_t features : {16, 64, 128, 200}) {
    expect_exact_in_all_precisions(graph, features);
  }
  graph = transposed(testing::hub_graph(300, 5000, 11));
  expect_exact_in_all_precisions(graph, 128);
  expect_exact_in_all_precisions(testing::random_graph(700, 700, 5, 12, false), 64);
}

TEST_P(SpmmTileKernels, AreExactBackwards) {
  const Graph graph = testing::random_graph(300, 190, 2500, 13, false);
  expect_exact_in_all_precisions(graph, 64, SpmmPass::backward);
  expect_exact_in_all_precisions(graph, 100, SpmmPass::backward);
  expect_exact_in_all_precisions(testing::hub_graph(40, 3000, 14), 128, SpmmPass::backward);
}

/// Rows and columns at multiples of steps and windows, one less, one more, and a duplicate that was
/// summed when the graph was made.
TEST_P(SpmmTileKernels, TakeValuesOfRunsAtTheEdgesOfTiles) {
  const auto check = [&](const Graph& graph, std::int64_t features) {
    for (const SpmmPass pass : {SpmmPass::forward, SpmmPass::backward}) {
      for (const Graph& some : {graph, with_integer_values(graph)}) {
        expect_exact_with_values_of_runs<float>(GetParam(), some, features, pass);
        expect_exact_with_values_of_runs<Bfloat16>(GetParam(), some, features, pass);
        expect_exact_with_values_of_runs<Float16>(GetParam(), some, features, pass);
      }
    }
  };
  for (const VertexId n : {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129}) {
    SCOPED_TRACE(n);
    check(testing::random_graph(n, 200, 7 * n, 31, false), 128);
    check(testing::hub_graph(70, n, 32), 40);
    check(transposed(testing::hub_graph(70, n, 33)), 7);
  }
  check(testing::hub_graph(300, 5000, 34), 64);
  check(testing::random_graph(40, 40, 0, 35, false), 64);
  BuildOptions summed;
  summed.duplicates = Duplicates::sum;
  check(from_coo(2, 17, std::vector<VertexId>{0, 0, 1, 1}, std::vector<VertexId>{16, 16, 0, 15}, {},
                 summed)
            .with_values({}),
        32);
}

/// The largest numbers of each precision are numbers, not infinity.
TEST_P(SpmmTileKernels, KeepTheLargestNumbers) {
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
TEST_P(SpmmTileKernels, TurnSumsThatAreTooLargeIntoInfinity) {
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

TEST_P(SpmmTileKernels, HoldTheirBoundOnLongSumsOfOneSign) {
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
      // Of many magnitudes: sums of like numbers are exact for a long while.
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

TEST_P(SpmmTileKernels, GiveTheSameBitsTwice) {
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

TEST_P(SpmmTileKernels, KeepWhatIsNotFiniteInItsWindow) {
  const Graph graph = testing::random_graph(1024, 1024, 6000, 17, false);
  constexpr VertexId spoiled = 77;
  const auto check = [&]<class T>(T) {
    Matrix<T> x = integers<T>(graph.num_cols(), 64, 18);
    x(spoiled, 5) = static_cast<T>(std::numeric_limits<float>::infinity());
    x(spoiled, 6) = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    const Matrix<T> y = product<T>(GetParam(), problem_of<T>(graph, 64, SpmmPass::forward), x);
    if (y.rows() == 0) return;
    Matrix<double> expected(graph.num_rows(), 64);
    reference::spmm(graph, Reduction::sum, test::to_double(x), {}, expected);
    const auto uses = [&](VertexId row) {
      const auto sources = graph.neighbours(row);
      return std::binary_search(sources.begin(), sources.end(), spoiled);
    };
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      bool near = false;
      for (VertexId other = row / 256 * 256; other < row / 256 * 256 + 256; ++other) {
        near = near || uses(other);
      }
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

TEST_P(SpmmTileKernels, HoldTheScalesOfColumnsToSeventeenBits) {
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

TEST_P(SpmmTileKernels, StayOutOfPlansThatWantExactness) {
  SpmmOptions options;
  options.device = testing::device_of(GetParam());
  options.features = 64;
  const Graph graph = testing::random_graph(100, 100, 900, 21, false);
  options.exact_nonfinite = true;
  EXPECT_TRUE(testing::kernel_info(plan_spmm(graph, options).kernel().name).exact_nonfinite);
  options.exact_nonfinite = false;
  options.strict = true;
  EXPECT_TRUE(testing::kernel_info(plan_spmm(graph, options).kernel().name).strict);
}

INSTANTIATE_TEST_SUITE_P(All, SpmmTileKernels, ::testing::ValuesIn(tile_kernel_names()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
