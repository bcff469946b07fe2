// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/plan.hpp"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// What the plans of all ops have in common.
namespace tessera::ops {
namespace {

using ::testing::HasSubstr;

Graph small_graph() { return testing::random_graph(5, 7, 20, 1, false); }

template <class Options>
Options with_features(bool backward = false) {
  Options options;
  options.features = 4;
  options.backward = backward;
  return options;
}

EdgeSoftmaxOptions softmax_options(bool backward = false) {
  EdgeSoftmaxOptions options;
  options.backward = backward;
  return options;
}

template <class Call>
void expect_misuse(const std::string& words, Call&& call) {
  testing::expect_error(ErrorCode::invalid_argument, {words}, call);
}

template <class PlanType>
void expect_empty(const PlanType& plan) {
  EXPECT_TRUE(plan.empty());
  expect_misuse("empty", [&] { plan.graph(); });
  expect_misuse("empty", [&] { plan.options(); });
  expect_misuse("empty", [&] { plan.kernel(); });
  expect_misuse("empty", [&] { plan.has_backward(); });
  expect_misuse("empty", [&] { plan.workspace_bytes(); });
  expect_misuse("empty", [&] { plan.explain(); });
}

template <class PlanType>
void expect_empty_when_moved_from(PlanType plan) {
  expect_empty(PlanType());
  ASSERT_FALSE(plan.empty());
  const PlanType copy = plan;
  const PlanType moved = std::move(plan);
  expect_empty(plan);
  EXPECT_EQ(copy.kernel().name, moved.kernel().name);
  EXPECT_EQ(&copy.graph(), &moved.graph()) << "copies share what they hold";
}

TEST(Plan, IsAnErrorWhereItIsEmpty) {
  expect_empty_when_moved_from(plan_spmm(small_graph(), with_features<SpmmOptions>()));
  expect_empty_when_moved_from(plan_sddmm(small_graph(), with_features<SddmmOptions>()));
  expect_empty_when_moved_from(plan_edge_softmax(small_graph(), softmax_options()));
  expect_empty_when_moved_from(plan_attention(small_graph(), with_features<AttentionOptions>()));
}

TEST(Plan, CannotRunWhereItIsEmpty) {
  Matrix<float> x(7, 4, 1.0f), y(5, 4), edges(20, 1);
  expect_misuse("empty", [&] { run(SpmmPlan(), {x}, {y}); });
  expect_misuse("empty", [&] { run_backward(SpmmPlan(), {y}, {x}); });
  expect_misuse("empty", [&] { run(SddmmPlan(), y, x, edges); });
  expect_misuse("empty", [&] { run_backward(SddmmPlan(), y, x, edges, y, {}); });
  expect_misuse("empty", [&] { run(EdgeSoftmaxPlan(), edges, edges); });
  expect_misuse("empty", [&] { run_backward(EdgeSoftmaxPlan(), edges, edges, edges); });
  expect_misuse("empty", [&] { run(AttentionPlan(), {y, x, x}, {y}); });
  expect_misuse("empty", [&] { run_backward(AttentionPlan(), {y, x, x}, y, y, y, {}); });
  expect_misuse("empty", [&] { attention_weights(AttentionPlan(), {y, x, x}, y, edges); });
}

/// The hub's row is cut into parts that meet in memory of the plan.
TEST(Plan, RunByTwoThreadsAtOnceIsAnErrorOrRight) {
  constexpr VertexId sources = 20000;
  std::vector<VertexId> rows, cols;
  for (VertexId source = 0; source < sources; ++source) {
    rows.push_back(source % 100 == 0 ? 1 : 0);
    cols.push_back(source);
  }
  SpmmOptions options = with_features<SpmmOptions>();
  const SpmmPlan plan = plan_spmm(from_coo(2, sources, rows, cols), options);
  std::atomic<int> right{0}, refused{0}, wrong{0};
  const auto work = [&](float value) {
    const Matrix<float> x(sources, options.features, value);
    Matrix<float> y(2, options.features);
    for (int i = 0; i < 200; ++i) {
      try {
        run(plan, {x}, {y});
        ++(y(0, 0) == value * (sources - sources / 100) ? right : wrong);
      } catch (const Error& error) {
        ++(error.code() == ErrorCode::invalid_argument ? refused : wrong);
      }
    }
  };
  std::vector<std::thread> threads;
  for (const float value : {1.0f, 2.0f, 4.0f}) threads.emplace_back(work, value);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
  EXPECT_EQ(right + refused, 600);
}

TEST(Plan, HasABackwardPassOnlyWhereItWasPlanned) {
  const Graph graph = small_graph();
  Matrix<float> x(7, 4, 1.0f), y(5, 4, 1.0f), edges(graph.num_edges(), 1, 1.0f);
  expect_misuse("no backward pass",
                [&] { run_backward(plan_spmm(graph, with_features<SpmmOptions>()), {y}, {x}); });
  expect_misuse("no backward pass", [&] {
    run_backward(plan_sddmm(graph, with_features<SddmmOptions>()), y, x, edges, y, {});
  });
  expect_misuse("no backward pass", [&] {
    run_backward(plan_edge_softmax(graph, softmax_options()), edges, edges, edges);
  });
  expect_misuse("no backward pass", [&] {
    run_backward(plan_attention(graph, with_features<AttentionOptions>()), {y, x, x}, y, y, y, {});
  });
}

template <class PlanType>
void expect_backward_explained(const PlanType& plan) {
  EXPECT_TRUE(plan.has_backward());
  const Explanation explanation = plan.explain();
  const Explanation* const backward = find_child(explanation, "backward");
  ASSERT_NE(backward, nullptr);
  EXPECT_FALSE(backward->summary.empty());
  EXPECT_THAT(to_string(explanation), HasSubstr("\n  backward: " + backward->summary));
}

TEST(Plan, ExplainsItsBackwardPassAsAChild) {
  const Graph graph = small_graph();
  const SpmmPlan spmm = plan_spmm(graph, with_features<SpmmOptions>(true));
  expect_backward_explained(spmm);
  expect_backward_explained(plan_sddmm(graph, with_features<SddmmOptions>(true)));
  expect_backward_explained(plan_edge_softmax(graph, softmax_options(true)));
  expect_backward_explained(plan_attention(graph, with_features<AttentionOptions>(true)));
  EXPECT_EQ(find_child(plan_spmm(graph, with_features<SpmmOptions>()).explain(), "backward"),
            nullptr);
  const Explanation explanation = spmm.explain();
  const Explanation& backward = *find_child(explanation, "backward");
  EXPECT_NE(find_child(backward, "gradient of edge values"), nullptr);
}

TEST(Plan, RunsTheKernelOfTheBackwardPassThatWasAskedFor) {
  SpmmOptions options = with_features<SpmmOptions>(true);
  options.backward_kernel = "spmm_backward/cpu/scatter";
  const Explanation explanation = plan_spmm(small_graph(), options).explain();
  EXPECT_THAT(find_child(explanation, "backward")->summary, HasSubstr("cpu/scatter: asked for"));
  options.backward_kernel = "spmm/cpu/nothing";
  expect_misuse("spmm/cpu/nothing", [&] { plan_spmm(small_graph(), options); });
}

TEST(Plan, RejectsValuesThatNoEnumerationHas) {
  auto spmm = with_features<SpmmOptions>();
  spmm.reduction = static_cast<Reduction>(4);
  expect_misuse("reduction", [&] { plan_spmm(small_graph(), spmm); });
  spmm = with_features<SpmmOptions>();
  spmm.precision = static_cast<Precision>(77);
  expect_misuse("precision", [&] { plan_spmm(small_graph(), spmm); });
  spmm = with_features<SpmmOptions>();
  spmm.tune = static_cast<Tune>(-1);
  expect_misuse("tune", [&] { plan_spmm(small_graph(), spmm); });
  spmm = with_features<SpmmOptions>();
  spmm.device.kind = static_cast<DeviceKind>(9);
  expect_misuse("device", [&] { plan_spmm(small_graph(), spmm); });
  spmm = with_features<SpmmOptions>();
  spmm.epochs = 0;
  expect_misuse("epochs", [&] { plan_spmm(small_graph(), spmm); });
  auto sddmm = with_features<SddmmOptions>();
  sddmm.function = static_cast<EdgeFunction>(2);
  expect_misuse("function", [&] { plan_sddmm(small_graph(), sddmm); });
  auto attention = with_features<AttentionOptions>();
  attention.form = static_cast<AttentionForm>(4);
  expect_misuse("form", [&] { plan_attention(small_graph(), attention); });
  auto softmax = softmax_options();
  softmax.precision = static_cast<Precision>(77);
  expect_misuse("precision", [&] { plan_edge_softmax(small_graph(), softmax); });
}

TEST(Plan, IsEqualInItsOptionsOnlyWhereAllAre) {
  const auto differs = [](auto&& change) {
    SpmmOptions changed;
    change(changed);
    return !(changed == SpmmOptions());
  };
  EXPECT_TRUE(SpmmOptions() == SpmmOptions());
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.features = 1; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.backward_kernel = "x"; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.backward_epilogue.residual = true; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.strict = true; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.exact_nonfinite = true; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.allow_nondeterministic = true; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.tune = Tune::measured; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.epochs = 7; }));
  EXPECT_TRUE(differs([](SpmmOptions& o) { o.backward = true; }));
}

}  // namespace
}  // namespace tessera::ops
