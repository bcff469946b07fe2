// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/reference.hpp"
#include "support/error_measure.hpp"
#include "support/matrices.hpp"
#include "support/tile_products.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/transform.hpp"

/// Kernels on tiles where tiles begin and end: rows and columns at multiples of steps, strips,
/// tiles and windows, one less, one more. The numbers are integers, so that every result is exact
/// and a wrong one says where it stands.
namespace tessera::ops {
namespace {

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

class SpmmTileKernels : public testing::KernelTest {
 protected:
  /// For the pattern, and with values; a kernel takes one or the other.
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
    for (const std::int64_t features : {32, 47, 127, 128}) {
      expect_exact_in_all_precisions(graph, features);
    }
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
  for (const std::int64_t features : {1,  4,  7,  8,  12,  16,  24,  32,  33,  40,  63,  64,
                                      65, 72, 96, 97, 128, 129, 136, 192, 256, 257, 264, 320}) {
    expect_exact_in_all_precisions(graph, features);
  }
}

TEST_P(SpmmTileKernels, AreExactWhereWindowsAreCut) {
  // More steps than any policy keeps whole; empty windows before and after.
  Graph graph = testing::hub_graph(500, 9000, 10);
  for (const std::int64_t features : {16, 29, 50, 64, 89, 128, 200, 257}) {
    expect_exact_in_all_precisions(graph, features);
  }
  graph = transposed(testing::hub_graph(300, 5000, 11));
  expect_exact_in_all_precisions(graph, 128);
  expect_exact_in_all_precisions(testing::random_graph(700, 700, 5, 12, false), 64);
}

/// Pieces are added up in groups, groups of groups, and so on: full ones, one piece more, and
/// groups of one.
TEST_P(SpmmTileKernels, AreExactForAnyNumberOfPieces) {
  constexpr VertexId piece_columns = 512;  // of the kernels that cut soonest
  for (const VertexId pieces : {2, 3, 4, 5, 8, 9, 16, 17, 20, 33, 64, 65}) {
    SCOPED_TRACE(pieces);
    const Graph graph = testing::hub_graph(70, piece_columns * pieces - 7, 16);
    expect_exact<Bfloat16>(GetParam(), graph, 128);
    expect_exact<Bfloat16>(GetParam(), graph, 200);
    expect_exact<float>(GetParam(), graph, 40);
    expect_exact<float>(GetParam(), with_integer_values(graph), 128);
  }
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

TEST_P(SpmmTileKernels, StayOutOfPlansThatWantExactness) {
  testing::note_compared();
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
