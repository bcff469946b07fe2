// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/edge_softmax.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/edge_softmax/reference.hpp"
#include "ops/simd/isa.hpp"
#include "support/comparisons.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"
#include "tessera/core/error.hpp"

/// Every registered edge_softmax kernel against the reference.
namespace tessera::test {
namespace {

ops::EdgeSoftmaxOptions options_of(const std::string& kernel, Precision precision,
                                   std::int64_t heads) {
  ops::EdgeSoftmaxOptions options;
  options.kernel = kernel;
  options.precision = precision;
  options.heads = heads;
  options.device = testing::device_of(kernel);
  options.backward = true;
  return options;
}

class EdgeSoftmaxKernels : public testing::KernelTest {
 protected:
  /// Calls body(kernel name): on the CPU for every instruction set.
  template <class Body>
  void for_instruction_sets(Body&& body) {
    if (testing::device_of(GetParam()).kind != DeviceKind::cpu) return body(GetParam());
    for (const ops::Isa isa : ops::available_isas()) {
      SCOPED_TRACE(to_string(isa));
      const ops::ForcedIsa forced(isa);
      body(GetParam());
    }
  }
};

/// CPU kernels take every case. A CUDA kernel may decline some, but then another one takes it.
bool supported(const Graph& graph, ops::EdgeSoftmaxOptions options) {
  if (testing::planned(options.device, [&] { return ops::plan_edge_softmax(graph, options); })) {
    return true;
  }
  options.kernel.clear();
  if (options.precision != Precision::fp64) {
    EXPECT_NO_THROW(ops::plan_edge_softmax(graph, options));
  }
  return false;
}

/// A run on operands that are brought to the plan's device and back.
template <class T>
void run_placed(const ops::EdgeSoftmaxPlan& plan, Matrix<T>& scores, Matrix<T>& weights) {
  PlacedMatrix<T> placed_scores(scores, plan.options().device);
  PlacedMatrix<T> placed_weights(weights, plan.options().device);
  ops::run(plan, placed_scores.view(), placed_weights.view());
  placed_weights.fetch();
}

/// Relative to each weight; 16-bit results may also be off by their rounding.
template <class T>
double tolerance(double magnitude) {
  if constexpr (std::is_same_v<T, double>) return 1e-14 * magnitude;
  if constexpr (std::is_same_v<T, float>) return 3e-6 * magnitude;
  // Below 2^-14 fp16 keeps multiples of 2^-24.
  if constexpr (std::is_same_v<T, Float16>) return (3e-6 + 0x1p-11) * magnitude + 0x1p-24;
  return (3e-6 + 0x1p-8) * magnitude;
}

template <class T>
void check(const std::string& kernel, const Graph& graph, std::int64_t heads, std::uint64_t seed) {
  SCOPED_TRACE(kernel + ", " + to_string(ops::PrecisionOf<T>::value) + ", heads " +
               std::to_string(heads) + ", seed " + std::to_string(seed));
  const std::int64_t edges = graph.num_edges();
  const auto options = options_of(kernel, ops::PrecisionOf<T>::value, heads);
  if (!supported(graph, options)) return;
  const auto plan = ops::plan_edge_softmax(graph, options);
  const Device device = options.device;
  const auto poison = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  Matrix<T> scores = normal_matrix<T>(edges, heads, seed);
  Matrix<T> grad_weights = normal_matrix<T>(edges, heads, seed + 1);
  Matrix<T> weights(edges, heads, poison);
  Matrix<T> grad_scores(edges, heads, poison);
  PlacedMatrix<T> placed_weights(weights, device), placed_grad_weights(grad_weights, device),
      placed_grad_scores(grad_scores, device);
  ops::run(plan, PlacedMatrix<T>(scores, device).view(), placed_weights.view());
  ops::run_backward(plan, placed_weights.view(), placed_grad_weights.view(),
                    placed_grad_scores.view());
  placed_weights.fetch();
  placed_grad_scores.fetch();

  Matrix<double> expected(edges, heads), expected_grad(edges, heads), magnitude(edges, heads);
  ops::reference::edge_softmax(graph, to_double(scores), expected);
  const Matrix<double> stored = to_double(weights);
  const Matrix<double> grads = to_double(grad_weights);
  ops::reference::edge_softmax_backward(graph, stored, grads, expected_grad);
  for (std::int64_t k = 0; k < edges * heads; ++k) {
    ASSERT_NEAR(static_cast<double>(weights.data()[k]), expected.data()[k],
                tolerance<T>(expected.data()[k]));
    // The sum over the row of P |dP| is at most the largest of them.
    ASSERT_NEAR(static_cast<double>(grad_scores.data()[k]), expected_grad.data()[k],
                tolerance<T>(stored.data()[k] * (std::abs(grads.data()[k]) + 4)));
  }

  Matrix<T> in_place = copy_of(scores);
  PlacedMatrix<T> placed_in_place(in_place, device);
  ops::run(plan, placed_in_place.view(), placed_in_place.view());
  placed_in_place.fetch();
  EXPECT_TRUE(same_bits(in_place, weights));
  Matrix<T> in_place_grad = copy_of(grad_weights);
  PlacedMatrix<T> placed_in_place_grad(in_place_grad, device);
  ops::run_backward(plan, placed_weights.view(), placed_in_place_grad.view(),
                    placed_in_place_grad.view());
  placed_in_place_grad.fetch();
  EXPECT_TRUE(same_bits(in_place_grad, grad_scores));

  Padded<T> padded_scores(scores), padded_weights(edges, heads);
  Placed<T> placed_padded_weights(padded_weights, device);
  ops::run(plan, Placed<T>(padded_scores, device).view(), placed_padded_weights.view());
  placed_padded_weights.fetch();
  EXPECT_TRUE(padded_weights.margins_intact());
  for (std::int64_t e = 0; e < edges; ++e) {
    for (std::int64_t h = 0; h < heads; ++h) {
      ASSERT_EQ(static_cast<double>(padded_weights.view()(e, h)),
                static_cast<double>(weights(e, h)));
    }
  }
}

TEST_P(EdgeSoftmaxKernels, OddGraphsAndAnyNumberOfHeads) {
  must_compare();
  for_instruction_sets([](const std::string& kernel) {
    for (const testing::NamedGraph& odd : testing::odd_patterns()) {
      SCOPED_TRACE(odd.name);
      for (const std::int64_t heads : {1, 2, 3, 4, 8, 16, 17, 257}) {
        check<float>(kernel, odd.graph, heads, 10);
        check<double>(kernel, odd.graph, heads, 20);
        check<Bfloat16>(kernel, odd.graph, heads, 30);
        if (testing::device_of(kernel).kind != DeviceKind::cpu) {
          check<Float16>(kernel, odd.graph, heads, 35);
        }
      }
    }
  });
}

TEST_P(EdgeSoftmaxKernels, Hub) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::star_graph(100000);
    check<float>(kernel, graph, 1, 40);
    check<float>(kernel, graph, 3, 50);
  });
}

TEST_P(EdgeSoftmaxKernels, LargeScoresDoNotOverflow) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::random_graph(20, 20, 200, 1, false);
    const auto options = options_of(kernel, Precision::fp32, 4);
    if (!supported(graph, options)) return;
    const auto plan = ops::plan_edge_softmax(graph, options);
    Matrix<float> scores = normal_matrix<float>(graph.num_edges(), 4, 60);
    for (std::int64_t e = 0; e < scores.rows(); ++e) {
      scores(e, 0) += 1e4f;
      scores(e, 1) -= 1e4f;
      scores(e, 2) *= 1e4f;
    }
    Matrix<float> weights(graph.num_edges(), 4);
    Matrix<double> expected(graph.num_edges(), 4);
    run_placed(plan, scores, weights);
    ops::reference::edge_softmax(graph, to_double(scores), expected);
    for (std::int64_t k = 0; k < weights.size(); ++k) {
      EXPECT_NEAR(static_cast<double>(weights.data()[k]), expected.data()[k], 1e-6);
    }
  });
}

TEST_P(EdgeSoftmaxKernels, NonFiniteScoresStayWithTheirRowAndHead) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::random_graph(33, 33, 300, 2, false);
    for (const std::int64_t heads : {1, 2, 3, 8}) {
      for (const float odd : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
        const auto options = options_of(kernel, Precision::fp32, heads);
        if (!supported(graph, options)) continue;
        const auto plan = ops::plan_edge_softmax(graph, options);
        Matrix<float> scores = normal_matrix<float>(graph.num_edges(), heads, 70);
        scores(17, heads - 1) = odd;
        // A whole row of minus infinity.
        for (EdgeOffset e = graph.row_offsets()[5]; e < graph.row_offsets()[6]; ++e) {
          scores(e, 0) = -inf;
        }
        Matrix<float> weights(graph.num_edges(), heads);
        Matrix<double> expected(graph.num_edges(), heads);
        run_placed(plan, scores, weights);
        ops::reference::edge_softmax(graph, to_double(scores), expected);
        for (std::int64_t k = 0; k < weights.size(); ++k) {
          EXPECT_EQ(std::isnan(weights.data()[k]), std::isnan(expected.data()[k])) << k;
        }
      }
    }
  });
}

TEST_P(EdgeSoftmaxKernels, SameBitsForAnyNumberOfThreads) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::star_graph(9000);
    const auto options = options_of(kernel, Precision::fp32, 3);
    if (!supported(graph, options)) return;
    const auto plan = ops::plan_edge_softmax(graph, options);
    Matrix<float> scores = normal_matrix<float>(graph.num_edges(), 3, 80);
    const auto run_with = [&](int threads) {
      const testing::ThreadScope scope(threads);
      Matrix<float> weights(graph.num_edges(), 3);
      run_placed(plan, scores, weights);
      return weights;
    };
    const Matrix<float> once = run_with(1);
    for (const int threads : {2, 3}) EXPECT_TRUE(same_bits(once, run_with(threads))) << threads;
  });
}

TEST_P(EdgeSoftmaxKernels, GradientAgreesWithFiniteDifferences) {
  for_instruction_sets([](const std::string& kernel) {
    if (testing::device_of(kernel).kind != DeviceKind::cpu) return;
    const Graph graph = testing::random_graph(7, 5, 18, 3, false);
    const auto plan = ops::plan_edge_softmax(graph, options_of(kernel, Precision::fp64, 3));
    Matrix<double> scores = normal_matrix<double>(graph.num_edges(), 3, 90);
    const Matrix<double> grad_weights = normal_matrix<double>(graph.num_edges(), 3, 91);
    Matrix<double> weights(graph.num_edges(), 3), grad_scores(graph.num_edges(), 3);
    ops::run(plan, scores, weights);
    ops::run_backward(plan, weights, grad_weights, grad_scores);
    const auto loss = [&] {
      ops::run(plan, scores, weights);
      return inner_product(weights, grad_weights);
    };
    testing::note_compared();
    expect_gradient(loss, scores, grad_scores);
  });
}

TEST(EdgeSoftmaxConformance, RejectsWhatDoesNotFit) {
  const Graph graph = testing::random_graph(6, 5, 12, 4, false);
  const auto plan = ops::plan_edge_softmax(graph, options_of("", Precision::fp32, 2));
  Matrix<float> scores(graph.num_edges(), 2, 0.0f);
  Matrix<float> narrow(graph.num_edges(), 1, 0.0f);
  EXPECT_NE(argument_problem([&] { ops::run(plan, scores, narrow); }).find("weights"),
            std::string::npos);
  EXPECT_NE(argument_problem([&] {
              ops::run_backward(plan, scores, scores, scores);
            }).find("shares memory"),
            std::string::npos);
  EXPECT_NE(argument_problem([&] {
              ops::plan_edge_softmax(graph, options_of("", Precision::fp32, 0));
            }).find("heads"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, EdgeSoftmaxKernels,
                         ::testing::ValuesIn(testing::kernel_names("edge_softmax")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
