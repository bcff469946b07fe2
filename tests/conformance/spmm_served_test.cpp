// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/kernel.hpp"
#include "ops/spmm/reference.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed_matrix.hpp"
#include "support/run_kernel.hpp"

/// Every registered kernel of spmm takes some problem, and is right there.
namespace tessera::ops {
namespace {

/// The columns of one head.
MatrixView<double> head_of(Matrix<double>& matrix, std::int64_t head, std::int64_t heads) {
  const std::int64_t width = matrix.cols() / heads;
  return {matrix.data() + head * width, matrix.rows(), width, matrix.cols()};
}

Matrix<double> column_of(const Matrix<double>& matrix, std::int64_t col) {
  Matrix<double> result(matrix.rows(), 1);
  for (std::int64_t i = 0; i < matrix.rows(); ++i) result(i, 0) = matrix(i, col);
  return result;
}

class SpmmServed : public testing::KernelTest {
 protected:
  template <class T>
  void compare(const Graph& graph, Reduction reduction, std::int64_t features, std::int64_t heads,
               bool values_of_runs) {
    SpmmProblem problem;
    problem.graph = graph;
    problem.reduction = reduction;
    problem.precision = PrecisionOf<T>::value;
    problem.features = features;
    problem.heads = heads;
    problem.device = testing::device_of(GetParam());
    problem.edge_values_expected = values_of_runs;
    problem.reorders = true;
    const SpmmKernel& kernel = testing::kernel_named(spmm_kernels(), GetParam());
    if (const std::string reason = kernel.why_not(problem); !reason.empty()) {
      return testing::note_declined(reason);
    }
    testing::note_compared();
    Matrix<T> x = test::normal_matrix<T>(graph.num_cols(), features, 11);
    Matrix<T> values = test::normal_matrix<T>(values_of_runs ? graph.num_edges() : 0, heads, 12);
    Matrix<T> y(graph.num_rows(), features,
                static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
    test::PlacedMatrix<T> placed_x(x, problem.device), placed_values(values, problem.device);
    test::PlacedMatrix<T> placed_y(y, problem.device);
    SpmmCall call;
    call.x = placed_x.view();
    call.y = placed_y.view();
    if (values_of_runs) call.edge_values = placed_values.view();
    test::run_kernel(kernel, problem, call);
    placed_y.fetch();

    Matrix<double> exact_x = test::to_double(x), exact_values = test::to_double(values);
    Matrix<double> expected(y.rows(), features), magnitude(y.rows(), features);
    for (std::int64_t head = 0; head < heads; ++head) {
      const Matrix<double> of_head =
          values_of_runs ? column_of(exact_values, head) : Matrix<double>();
      const auto of_edges = values_of_runs ? of_head.view() : MatrixView<const double>{};
      reference::spmm(graph, reduction, head_of(exact_x, head, heads), of_edges,
                      head_of(expected, head, heads));
      reference::spmm_magnitude(graph, reduction, head_of(exact_x, head, heads), of_edges,
                                head_of(magnitude, head, heads));
    }
    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    if (!kernel.info.strict) tolerance.of_magnitude = 1e-5;
    EXPECT_EQ(testing::first_mismatch(y.view(), expected, magnitude, tolerance), "")
        << to_string(reduction) << ", " << features << " features, " << heads << " heads";
  }
};

TEST_P(SpmmServed, ServeSomeProblem) {
  must_compare();
  auto graphs = testing::with_all_weights({"", testing::random_graph(90, 70, 900, 13, false)},
                                          testing::NumberKind::normal);
  graphs.push_back({"square", testing::random_graph(90, 90, 900, 13, false)});
  for (const std::int64_t features : {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      for (const bool values_of_runs : {false, true}) {
        for (const testing::NamedGraph& named : graphs) {
          compare<float>(named.graph, reduction, features, 1, values_of_runs);
          compare<Bfloat16>(named.graph, reduction, features, 1, values_of_runs);
        }
      }
    }
  }
  for (const std::int64_t heads : {2, 4}) {
    compare<float>(graphs[0].graph, Reduction::sum, 8 * heads, heads, true);
    compare<Bfloat16>(graphs[0].graph, Reduction::sum, 8 * heads, heads, true);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpmmServed, ::testing::ValuesIn(testing::kernel_names("spmm")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
