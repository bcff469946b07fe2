// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/spmm.hpp"

/// A run that the chosen kernel does not take goes to the one that the plan names for it: the bits
/// are those of a plan that was asked for that kernel.
namespace tessera::ops {
namespace {

constexpr std::int64_t features = 64;

/// The kernel that a plan names for runs of some kind; its own where it names no other.
std::string serving(const AnyPlan& plan, const std::string& runs) {
  for (const Explanation& child : plan.explain().children) {
    if (child.name.find(runs) == std::string::npos) continue;
    for (const Candidate& candidate : child.candidates) {
      if (candidate.verdict == "chosen") return candidate.kernel;
    }
  }
  return plan.kernel().name;
}

class SpmmFallback : public ::testing::TestWithParam<std::string> {
 protected:
  static SpmmOptions options_of(const std::string& kernel, Precision precision) {
    SpmmOptions options;
    options.features = features;
    options.precision = precision;
    options.kernel = kernel;
    options.device = testing::device_of(kernel);
    return options;
  }

  /// False where the kernel does not take the problem at all.
  template <class Make>
  static bool can(Make&& make) {
    try {
      make();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      return false;
    }
  }

  template <class T>
  static Matrix<T> spmm(const SpmmPlan& plan, bool edge_values, std::int64_t margin) {
    const Graph& graph = plan.graph();
    const Device device = plan.options().device;
    Matrix<T> x = test::normal_matrix<T>(graph.num_cols(), features, 5);
    test::Padded<T> padded_x(x, margin), padded_y(graph.num_rows(), features, margin);
    Matrix<T> values = test::normal_matrix<T>(graph.num_edges(), 1, 6);
    test::Placed<T> placed_x(padded_x, device), placed_y(padded_y, device);
    test::PlacedMatrix<T> placed_values(values, device);
    SpmmInputs inputs{placed_x.view()};
    if (edge_values) inputs.edge_values = placed_values.view();
    run(plan, inputs, {placed_y.view()});
    placed_y.fetch();
    EXPECT_TRUE(padded_y.margins_intact());
    return copied<T>(padded_y.view());
  }

  template <class T>
  static Matrix<T> copied(MatrixView<T> from) {
    Matrix<T> result(from.rows, from.cols);
    for (std::int64_t i = 0; i < from.rows; ++i) {
      for (std::int64_t j = 0; j < from.cols; ++j) result(i, j) = from(i, j);
    }
    return result;
  }

  static constexpr std::int64_t off_boundaries = 3;
};

TEST_P(SpmmFallback, RunsTheKernelThatThePlanNames) {
  const Graph graph = testing::random_graph(70, 90, 900, 21, false);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const SpmmOptions options = options_of(GetParam(), precision);
    if (!can([&] { plan_spmm(graph, options); })) continue;
    const SpmmPlan plan = plan_spmm(graph, options);
    if (!plan.kernel().deterministic) continue;
    const auto expect_same = [&](const std::string& runs, bool edge_values, std::int64_t margin) {
      SpmmOptions other = options;
      other.kernel = serving(plan, runs);
      SCOPED_TRACE(runs + " by " + other.kernel);
      const SpmmPlan named = plan_spmm(graph, other);
      if (precision == Precision::fp32) {
        EXPECT_TRUE(test::same_bits(spmm<float>(plan, edge_values, margin),
                                    spmm<float>(named, edge_values, margin)));
      } else {
        EXPECT_TRUE(test::same_bits(spmm<Bfloat16>(plan, edge_values, margin),
                                    spmm<Bfloat16>(named, edge_values, margin)));
      }
    };
    expect_same("edge values", true, 0);
    expect_same("rows off 16-byte boundaries", false, off_boundaries);
    expect_same("edge values", true, off_boundaries);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpmmFallback, ::testing::ValuesIn(testing::kernel_names("spmm")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
