// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/spmm.hpp"

/// Sums with a value for each edge and head, forward and backward, against loops in double
/// precision.
namespace tessera::ops {
namespace {

/// What a sum and its gradients are, or with absolute numbers, how large their terms are.
struct Exact {
  Matrix<double> y, grad_x, grad_values;

  Exact(const Graph& graph, std::int64_t heads, const Matrix<double>& x,
        const Matrix<double>& values, const Matrix<double>& grad, bool magnitude)
      : y(graph.num_rows(), x.cols(), 0),
        grad_x(x.rows(), x.cols(), 0),
        grad_values(values.rows(), heads, 0) {
    const std::int64_t width = x.cols() / heads;
    const auto term = [&](double a, double b) { return magnitude ? std::abs(a * b) : a * b; };
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1];
           ++edge) {
        const VertexId col = graph.col_indices()[edge];
        for (std::int64_t f = 0; f < x.cols(); ++f) {
          const std::int64_t head = f / width;
          y(row, f) += term(values(edge, head), x(col, f));
          grad_x(col, f) += term(values(edge, head), grad(row, f));
          grad_values(edge, head) += term(grad(row, f), x(col, f));
        }
      }
    }
  }
};

template <class T>
Matrix<T> unknown(std::int64_t rows, std::int64_t cols) {
  return Matrix<T>(rows, cols, static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
}

class SpmmHeads : public testing::KernelTest {
 protected:
  template <class T>
  void compare(const Graph& graph, std::int64_t heads, std::int64_t width) {
    SCOPED_TRACE(to_string(PrecisionOf<T>::value));
    SpmmOptions options;
    options.kernel = GetParam();
    options.precision = PrecisionOf<T>::value;
    options.features = heads * width;
    options.heads = heads;
    options.backward = true;
    options.device = testing::device_of(GetParam());
    if (!testing::planned(options.device, [&] { return plan_spmm(graph, options); })) return;
    testing::note_compared();
    const Device device = options.device;
    Matrix<T> x = test::normal_matrix<T>(graph.num_cols(), options.features, 21);
    Matrix<T> values = test::normal_matrix<T>(graph.num_edges(), heads, 22);
    Matrix<T> grad = test::normal_matrix<T>(graph.num_rows(), options.features, 23);
    Matrix<T> y = unknown<T>(graph.num_rows(), options.features);
    Matrix<T> grad_x = unknown<T>(graph.num_cols(), options.features);
    Matrix<T> grad_values = unknown<T>(graph.num_edges(), heads);
    test::PlacedMatrix<T> on_x(x, device), on_values(values, device), on_grad(grad, device);
    test::PlacedMatrix<T> on_y(y, device), on_grad_x(grad_x, device);
    test::PlacedMatrix<T> on_grad_values(grad_values, device);
    const SpmmPlan plan = plan_spmm(graph, options);
    run(plan, {.x = on_x.view(), .edge_values = on_values.view()}, {on_y.view()});
    run_backward(plan,
                 {.grad_y = on_grad.view(), .x = on_x.view(), .edge_values = on_values.view()},
                 {on_grad_x.view(), on_grad_values.view()});
    on_y.fetch();
    on_grad_x.fetch();
    on_grad_values.fetch();

    const Matrix<double> exact_x = test::to_double(x), exact_values = test::to_double(values);
    const Matrix<double> exact_grad = test::to_double(grad);
    const Exact exact(graph, heads, exact_x, exact_values, exact_grad, false);
    const Exact sizes(graph, heads, exact_x, exact_values, exact_grad, true);
    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    tolerance.of_magnitude = std::max(tolerance.of_magnitude, 1e-5);
    EXPECT_EQ(testing::first_mismatch(y.view(), exact.y, sizes.y, tolerance), "");
    EXPECT_EQ(testing::first_mismatch(grad_x.view(), exact.grad_x, sizes.grad_x, tolerance), "");
    EXPECT_EQ(testing::first_mismatch(grad_values.view(), exact.grad_values, sizes.grad_values,
                                      tolerance),
              "");
  }

  void compare_all(const Graph& graph, std::int64_t heads, std::int64_t width) {
    SCOPED_TRACE(std::to_string(heads) + " heads of " + std::to_string(width));
    compare<float>(graph, heads, width);
    compare<double>(graph, heads, width);
    compare<Bfloat16>(graph, heads, width);
  }
};

TEST_P(SpmmHeads, MatchTheReferenceOnOddGraphs) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    compare_all(named.graph, 2, 8);
    compare_all(named.graph, 3, 5);
  }
}

TEST_P(SpmmHeads, TakeAnyWidth) {
  const Graph graph = testing::random_graph(60, 45, 700, 24, false);
  for (const std::int64_t width : {1, 4, 16, 33}) compare_all(graph, 4, width);
}

/// The kernels that take several values per edge.
std::vector<std::string> kernels_with_heads() {
  std::vector<std::string> names = testing::kernel_names("spmm");
  std::erase_if(names, [](const std::string& name) {
    return name != "spmm/cpu/rows" && name != "spmm/cuda/heads";
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SpmmHeads, ::testing::ValuesIn(kernels_with_heads()),
                         testing::kernel_test_name);

TEST(SpmmHeadsOptions, AreRefusedWhereTheyCannotBe) {
  const Graph graph = testing::random_graph(6, 6, 12, 25, false);
  SpmmOptions options;
  options.features = 8;
  options.heads = 2;
  EXPECT_NO_THROW(plan_spmm(graph, options));
  const auto refused = [](const Graph& of, const SpmmOptions& with) {
    EXPECT_THROW(plan_spmm(of, with), Error);
  };
  for (const std::int64_t heads : {0, -1, 3}) {
    SpmmOptions odd = options;
    odd.heads = heads;
    refused(graph, odd);
  }
  SpmmOptions other = options;
  other.reduction = Reduction::mean;
  refused(graph, other);
  other = options;
  other.epilogue.bias = true;
  refused(graph, other);
  other = options;
  other.edge_values_at_run = false;
  refused(graph, other);
  refused(testing::with_all_weights({"", graph}, testing::NumberKind::normal)[1].graph, options);
  const SpmmPlan plan = plan_spmm(graph, options);
  Matrix<float> x(6, 8, 0), y(6, 8, 0), one_head(graph.num_edges(), 1, 0);
  EXPECT_THROW(run(plan, {.x = x.view()}, {y.view()}), Error);
  EXPECT_THROW(run(plan, {.x = x.view(), .edge_values = one_head.view()}, {y.view()}), Error);
}

}  // namespace
}  // namespace tessera::ops
