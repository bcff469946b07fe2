// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/sddmm/kernel.hpp"
#include "ops/sddmm/reference.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "tessera/graph/transform.hpp"

/// Dot products on tiles where tiles begin and end: rows and columns at multiples of strips, tiles
/// and windows, one less, one more. The numbers are integers, so that every result is exact and a
/// wrong one says where it stands.
namespace tessera::ops {
namespace {

std::vector<std::string> tile_kernel_names() {
  std::vector<std::string> names;
  for (const std::string& name : testing::kernel_names("sddmm")) {
    const bool tiled = name.find("/tiles_") != std::string::npos;
    if (tiled || name.find("/short_") != std::string::npos) names.push_back(name);
  }
  return names;
}

using testing::integers;

/// Runs the kernel itself, whatever a plan would choose. Nothing where it declines the problem.
template <class T>
Matrix<T> dots(const std::string& name, const SddmmProblem& problem, const Matrix<T>& u,
               const Matrix<T>& v) {
  const SddmmKernel& kernel = testing::kernel_named(sddmm_kernels(), name);
  const std::string reason = kernel.why_not(problem);
  if (!reason.empty()) {
    testing::note_declined(reason);
    return {};
  }
  testing::note_compared();
  // A margin of 8 keeps rows on 16-byte boundaries.
  test::Padded<T> padded_u(u, 8);
  test::Padded<T> padded_v(v, 8);
  test::Padded<T> padded_edges(problem.graph.num_edges(), problem.heads, 8);
  test::Placed<T> placed_u(padded_u, problem.device);
  test::Placed<T> placed_v(padded_v, problem.device);
  test::Placed<T> placed_edges(padded_edges, problem.device);
  const auto prepared = kernel.prepare(problem);
  synchronise(problem.device);  // kernels read what was prepared before they wait for others
  prepared->run(placed_u.view(), placed_v.view(), placed_edges.view(), {});
  placed_edges.fetch();
  EXPECT_TRUE(padded_edges.margins_intact());
  return padded_edges.inner();
}

template <class T>
SddmmProblem problem_of(const Graph& graph, std::int64_t features, std::int64_t heads) {
  SddmmProblem problem;
  problem.graph = graph;
  problem.precision = PrecisionOf<T>::value;
  problem.features = features;
  problem.heads = heads;
  problem.device = {DeviceKind::cuda, 0};
  return problem;
}

template <class T>
void expect_exact(const std::string& name, const Graph& graph, std::int64_t features,
                  std::int64_t heads) {
  SCOPED_TRACE(to_string(PrecisionOf<T>::value));
  SCOPED_TRACE(features);
  const Matrix<T> u = integers<T>(graph.num_rows(), features, 5);
  const Matrix<T> v = integers<T>(graph.num_cols(), features, 6);
  const Matrix<T> edges = dots<T>(name, problem_of<T>(graph, features, heads), u, v);
  if (edges.rows() != graph.num_edges()) return;
  Matrix<double> expected(graph.num_edges(), heads);
  reference::sddmm(graph, EdgeFunction::dot, heads, test::to_double(u), test::to_double(v),
                   expected);
  for (double& value : expected.span()) value = testing::rounded_to<T>(value);
  EXPECT_EQ(testing::first_mismatch(edges.view(), expected, expected, {}), "");
}

class SddmmTileKernels : public testing::KernelTest {
 protected:
  void expect_exact_in_all_precisions(const Graph& graph, std::int64_t features,
                                      std::int64_t heads = 1) {
    expect_exact<float>(GetParam(), graph, features, heads);
    expect_exact<Bfloat16>(GetParam(), graph, features, heads);
    expect_exact<Float16>(GetParam(), graph, features, heads);
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SddmmTileKernels);

TEST_P(SddmmTileKernels, AreExactAtTheEdgesOfWindows) {
  for (const VertexId rows : {15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 520}) {
    SCOPED_TRACE(rows);
    const Graph graph = testing::random_graph(rows, 300, 6 * rows, 7, false);
    for (const std::int64_t features : {16, 32, 128}) {
      expect_exact_in_all_precisions(graph, features);
    }
  }
}

TEST_P(SddmmTileKernels, AreExactAtTheEdgesOfTiles) {
  for (const VertexId cols : {1, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 193}) {
    SCOPED_TRACE(cols);
    // The first row uses every column: exactly so many are gathered.
    const Graph graph = testing::hub_graph(140, cols, 8);
    for (const std::int64_t features : {24, 64, 136}) {
      expect_exact_in_all_precisions(graph, features);
    }
  }
}

TEST_P(SddmmTileKernels, AreExactOnTilesWithoutGaps) {
  // Every list of edges is as long as it can be.
  std::vector<VertexId> rows, cols;
  for (VertexId i = 0; i < 130; ++i) {
    for (VertexId j = 0; j < 150; ++j) {
      rows.push_back(i);
      cols.push_back(j);
    }
  }
  const Graph graph = from_coo(130, 150, rows, cols);
  for (const std::int64_t features : {16, 64, 128, 256}) {
    expect_exact_in_all_precisions(graph, features);
  }
}

TEST_P(SddmmTileKernels, AreExactOnEveryWidth) {
  const Graph graph = testing::random_graph(150, 170, 1500, 9, false);
  for (const std::int64_t features : {4,  8,   12,  16,  20,  24,  32,  40,  56,  64, 72,
                                      96, 120, 128, 136, 192, 248, 256, 264, 384, 520}) {
    expect_exact_in_all_precisions(graph, features);
  }
}

TEST_P(SddmmTileKernels, AreExactForEveryHead) {
  const Graph graph = testing::random_graph(150, 170, 1500, 9, false);
  for (const std::int64_t heads : {2, 3, 8}) {
    SCOPED_TRACE(heads);
    for (const std::int64_t width : {8, 16, 40, 64}) {
      expect_exact_in_all_precisions(graph, width * heads, heads);
    }
  }
}

TEST_P(SddmmTileKernels, AreExactWhereWindowsAreShared) {
  // More tiles than a block takes at once; empty windows before and after.
  const Graph wide = testing::hub_graph(500, 9000, 10);
  for (const std::int64_t features : {16, 64, 128, 200, 512}) {
    expect_exact_in_all_precisions(wide, features);
  }
  const Graph tall = transposed(testing::hub_graph(300, 5000, 11));
  expect_exact_in_all_precisions(tall, 128);
  expect_exact_in_all_precisions(testing::random_graph(700, 700, 5, 12, false), 64);
  expect_exact_in_all_precisions(testing::random_graph(9000, 9000, 60000, 13, false), 64);
  expect_exact_in_all_precisions(testing::random_graph(9000, 9000, 60000, 13, false), 256);
}

TEST_P(SddmmTileKernels, HoldTheErrorOfTheirPrecision) {
  const Graph graph = testing::random_graph(300, 280, 4000, 19, false);
  const auto check = [&]<class T>(T, std::int64_t features) {
    const auto normal = [&](std::int64_t rows, std::uint64_t seed) {
      Matrix<T> result(rows, features);
      const auto values = testing::random_values(result.size(), testing::NumberKind::normal, seed);
      for (std::int64_t i = 0; i < result.size(); ++i) result.data()[i] = static_cast<T>(values[i]);
      return result;
    };
    const Matrix<T> u = normal(graph.num_rows(), 20);
    const Matrix<T> v = normal(graph.num_cols(), 21);
    const Matrix<T> edges = dots<T>(GetParam(), problem_of<T>(graph, features, 1), u, v);
    if (edges.rows() == 0) return;
    const auto absolute = [](Matrix<double> matrix) {
      for (double& value : matrix.span()) value = std::abs(value);
      return matrix;
    };
    Matrix<double> expected(graph.num_edges(), 1);
    Matrix<double> magnitude(graph.num_edges(), 1);
    reference::sddmm(graph, EdgeFunction::dot, 1, test::to_double(u), test::to_double(v), expected);
    reference::sddmm(graph, EdgeFunction::dot, 1, absolute(test::to_double(u)),
                     absolute(test::to_double(v)), magnitude);
    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    if (sizeof(T) == 4 && !testing::kernel_info(GetParam()).strict) tolerance.of_magnitude = 1e-5;
    EXPECT_EQ(testing::first_mismatch(edges.view(), expected, magnitude, tolerance), "")
        << to_string(PrecisionOf<T>::value) << " " << features;
  };
  for (const std::int64_t features : {8, 64, 128, 512}) {
    check(float{}, features);
    check(Bfloat16{}, features);
    check(Float16{}, features);
  }
}

TEST_P(SddmmTileKernels, HoldTheErrorOnLongSumsOfOneSign) {
  const Graph graph = testing::random_graph(50, 60, 400, 22, false);
  const auto check = [&]<class T>(T, std::int64_t features) {
    const auto positive = [&](std::int64_t rows, std::uint64_t seed) {
      Matrix<T> result(rows, features);
      const auto values = testing::random_values(result.size(), testing::NumberKind::normal, seed);
      for (std::int64_t i = 0; i < result.size(); ++i) {
        result.data()[i] = static_cast<T>(static_cast<float>(std::abs(values[i])));
      }
      return result;
    };
    const Matrix<T> u = positive(graph.num_rows(), 23);
    const Matrix<T> v = positive(graph.num_cols(), 24);
    const Matrix<T> edges = dots<T>(GetParam(), problem_of<T>(graph, features, 1), u, v);
    if (edges.rows() == 0) return;
    Matrix<double> expected(graph.num_edges(), 1);
    reference::sddmm(graph, EdgeFunction::dot, 1, test::to_double(u), test::to_double(v), expected);
    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    tolerance.of_magnitude = 1e-5;
    EXPECT_EQ(testing::first_mismatch(edges.view(), expected, expected, tolerance), "")
        << to_string(PrecisionOf<T>::value) << " " << features;
  };
  for (const std::int64_t features : {256, 1000, 1024}) {
    check(float{}, features);
    check(Bfloat16{}, features);
    check(Float16{}, features);
  }
}

TEST_P(SddmmTileKernels, GiveTheSameBitsTwice) {
  const Graph graph = testing::hub_graph(900, 7000, 15);
  const Matrix<float> u = test::normal_matrix<float>(graph.num_rows(), 96, 16);
  const Matrix<float> v = test::normal_matrix<float>(graph.num_cols(), 96, 17);
  const SddmmProblem problem = problem_of<float>(graph, 96, 1);
  const Matrix<float> edges = dots<float>(GetParam(), problem, u, v);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(test::same_bits(edges, dots<float>(GetParam(), problem, u, v)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SddmmTileKernels, ::testing::ValuesIn(tile_kernel_names()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
