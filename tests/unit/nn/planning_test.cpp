// SPDX-License-Identifier: Apache-2.0
// Planning as a step of its own, options that reach every plan, and a graph for each layer.
#include <array>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/recording_scope.hpp"
#include "graph/access.hpp"
#include "support/expect_error.hpp"
#include "support/gradient_check.hpp"
#include "support/layer_zoo.hpp"
#include "support/matrices.hpp"
#include "tessera/core/error.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/plan_store.hpp"

namespace tessera::nn {
namespace {

using test::double_placement;
using test::GradientCheck;
using test::normal_tensor;
using test::weighted_graph;

constexpr std::int64_t in = 5;

Context training_context(Topology& graph) {
  Context context;
  context.graph = &graph;
  context.training = true;
  context.seed = 7;
  return context;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  const double* const data = tensor.as<double>().data;
  return {data, data + tensor.size()};
}

TEST(Prepare, MakesAllPlansAndBuffersOfEveryLayer) {
  Topology features(weighted_graph(17, in, 40, 4));
  const Tensor x = normal_tensor(17, in, 2);
  for (const auto& entry : test::layer_zoo()) {
    SCOPED_TRACE(entry.name);
    auto layer = entry.make(in, double_placement());
    for (const Input& input : {Input(x), Input(features)}) {
      if (input.is_sparse() && !layer->accepts_sparse()) continue;
      Topology graph(weighted_graph(17, 17, 60, 1));
      const Context context = training_context(graph);
      layer->prepare(input, context);
      Tensor grad(17, layer->output_width(), double_placement());
      grad.fill(1);
      const RecordingScope recording;
      layer->forward(input, context);
      layer->backward(grad, context);
    }
  }
}

TEST(Prepare, IsNeededBeforeARecording) {
  Topology graph(weighted_graph(17, 17, 60, 1));
  const Context context = training_context(graph);
  const Tensor x = normal_tensor(17, in, 2);
  for (const auto& entry : test::layer_zoo()) {
    SCOPED_TRACE(entry.name);
    auto layer = entry.make(in, double_placement());
    const RecordingScope recording;
    testing::expect_error(ErrorCode::invalid_argument, {"while recording", "Layer::prepare"},
                          [&] { layer->forward(x, context); });
  }
}

TEST(Prepare, ComputesNothing) {
  Topology graph(weighted_graph(17, 17, 60, 1));
  const Context context = training_context(graph);
  const Tensor x = normal_tensor(17, in, 2);
  for (const auto& entry : test::layer_zoo()) {
    SCOPED_TRACE(entry.name);
    auto prepared = entry.make(in, double_placement());
    auto plain = entry.make(in, double_placement());
    for (Layer* layer : {prepared.get(), plain.get()}) layer->reset_parameters(5);
    prepared->prepare(x, context);
    const auto before = plain->state(), after = prepared->state();
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(numbers_of(*before[i].tensor), numbers_of(*after[i].tensor)) << before[i].path;
    }
    EXPECT_EQ(numbers_of(plain->forward(x, context)), numbers_of(prepared->forward(x, context)));
  }
}

TEST(Prepare, PlansNoBackwardPassWithoutTraining) {
  Topology graph(weighted_graph(17, 17, 60, 1));
  Context context;
  context.graph = &graph;
  Gcn layer({in, 3}, double_placement());
  layer.prepare(normal_tensor(17, in, 2), context);
  ops::SpmmOptions options;
  options.precision = Precision::fp64;
  options.features = 3;
  options.edge_values_at_run = false;
  options.edge_value_gradient = false;
  EXPECT_FALSE(graph.spmm(gcn_adjacency, options).has_backward());
  context.training = true;
  layer.prepare(normal_tensor(17, in, 2), context);
  options.backward = true;
  const ops::SpmmPlan both = graph.spmm(gcn_adjacency, options);
  EXPECT_TRUE(both.has_backward());
}

TEST(Topology, GivesItsOptionsToEveryPlan) {
  ops::PlanOptions plans;
  plans.strict = true;
  plans.exact_nonfinite = true;
  plans.allow_nondeterministic = true;
  plans.epochs = 42;
  plans.store = std::make_shared<ops::PlanStore>();
  plans.kernel = "of no meaning here";
  Topology topology(weighted_graph(17, 17, 60, 1), {}, plans);
  plans.kernel.clear();
  const auto expect_own = [&](const ops::PlanOptions& options) { EXPECT_TRUE(options == plans); };
  ops::SpmmOptions spmm;
  spmm.features = 8;
  spmm.strict = false;
  expect_own(topology.spmm(pattern, spmm).options());
  ops::AttentionOptions attention;
  attention.features = 8;
  expect_own(topology.attention(pattern, attention).options());
  EXPECT_EQ(plans.store->size(), 2u);
}

TEST(Topology, KeepsPlansOfDifferentOptionsApart) {
  Topology topology(weighted_graph(17, 17, 60, 1));
  ops::SpmmOptions options;
  options.features = 8;
  const ops::SpmmPlan plan = topology.spmm(pattern, options);
  const auto is_another = [&](auto&& change) {
    ops::SpmmOptions changed = options;
    change(changed);
    return &topology.spmm(pattern, changed).graph() != &plan.graph();
  };
  EXPECT_FALSE(is_another([](ops::SpmmOptions&) {}));
  EXPECT_TRUE(is_another([](ops::SpmmOptions& o) { o.edge_value_gradient = false; }));
  EXPECT_TRUE(is_another([](ops::SpmmOptions& o) { o.edge_values_at_run = false; }));
  EXPECT_TRUE(is_another([](ops::SpmmOptions& o) { o.edge_values_expected = true; }));
  EXPECT_TRUE(is_another([](ops::SpmmOptions& o) { o.reduction = ops::Reduction::mean; }));
  EXPECT_TRUE(is_another([](ops::SpmmOptions& o) { o.backward = true; }));
}

/// Two bipartite graphs as layer-wise sampling makes them: 20 sources, of which the first 12 are
/// the targets of the first layer and the sources of the second, which has 5 targets.
class TwoGraphs : public ::testing::Test {
 protected:
  TwoGraphs()
      : first_(weighted_graph(12, 20, 70, 1)),
        second_(weighted_graph(5, 12, 30, 2)),
        both_{&first_, &second_} {
    context_.graphs = both_;
    context_.training = true;
    context_.seed = 4;
  }

  void expect_gradients(Layer& layer) {
    layer.reset_parameters(5);
    Tensor x = normal_tensor(20, in, 3);
    GradientCheck check(layer, context_,
                        [&]() -> const Tensor& { return layer.forward(x, context_); });
    EXPECT_EQ(layer.forward(x, context_).rows(), 5);
    const Tensor* const grad = check.backward();
    ASSERT_NE(grad, nullptr);
    check.expect_gradient("input", x, *grad);
    check.backward();
    check.expect_parameter_gradients();
  }

  Topology first_, second_;
  std::array<Topology*, 2> both_;
  Context context_;
};

TEST_F(TwoGraphs, gradients_of_models) {
  for (const ModelKind kind : {ModelKind::sage, ModelKind::gat, ModelKind::gatv2}) {
    ModelConfig config = paper_defaults(kind);
    SCOPED_TRACE(describe(config));
    config.layers = 2;
    config.hidden = 4;
    config.activation = ops::Activation::elu;
    Model model(config, in, 3, 1, double_placement());
    model.set_needs_input_gradient(true);
    EXPECT_EQ(model.num_graphs(), 2);
    expect_gradients(model);
  }
}

TEST_F(TwoGraphs, gradients_of_weighted_sums_and_residuals_between) {
  Sequential stack(double_placement());
  stack.add("first", std::make_unique<Gcn>(GcnOptions{.in = in, .out = 4, .normalise = false},
                                           double_placement()));
  stack.add("between", std::make_unique<Linear>(LinearOptions{4, 6, {}}, double_placement()));
  stack.add("second", std::make_unique<Gcn>(GcnOptions{.in = 6, .out = 7, .normalise = false},
                                            double_placement()));
  expect_gradients(stack);
}

TEST_F(TwoGraphs, are_planned_each_on_its_own) {
  ModelConfig config = paper_defaults(ModelKind::sage);
  Model model(config, in, 3, 1, double_placement());
  const Tensor x = normal_tensor(20, in, 3);
  model.prepare(x, context_);
  Tensor grad(5, 3, double_placement());
  grad.fill(1);
  const RecordingScope recording;
  EXPECT_EQ(model.forward(x, context_).rows(), 5);
  model.backward(grad, context_);
}

TEST_F(TwoGraphs, must_be_as_many_as_the_layers) {
  ModelConfig config = paper_defaults(ModelKind::sage);
  config.layers = 3;
  Model model(config, in, 3, 1, double_placement());
  testing::expect_error(ErrorCode::invalid_argument, {"2 graphs", "take 3"},
                        [&] { model.forward(normal_tensor(20, in, 3), context_); });
}

TEST_F(TwoGraphs, more_targets_than_sources_is_an_error) {
  Topology wide(weighted_graph(30, 20, 70, 1));
  Context context;
  context.graph = &wide;
  Sage layer(SageOptions{.in = in, .out = 3}, double_placement());
  testing::expect_error(ErrorCode::invalid_argument, {"30 targets among 20 sources"},
                        [&] { layer.forward(normal_tensor(20, in, 3), context); });
}

TEST(Topologies, leave_nothing_with_their_graphs_that_nobody_uses) {
  using tessera::detail::GraphAccess;
  const Graph graph = weighted_graph(20, 20, 70, 1);
  const auto keep = [&](const Graph& with) {
    GraphAccess::derived(
        with, "of plans", [] { return std::make_shared<const int>(1); },
        tessera::Keeping::for_users);
  };
  Graph with_loops;
  {
    Topology topology(graph);
    with_loops = topology.derived(pattern_with_self_loops);
    keep(graph);
    keep(with_loops);
  }
  EXPECT_EQ(GraphAccess::known(graph, "of plans"), nullptr);
  EXPECT_EQ(GraphAccess::known(with_loops, "of plans"), nullptr);
}

/// Edges in no order: sums read them as they are where they may, all else makes rows of them.
TEST(Topology, takes_edges_in_no_order) {
  const std::vector<VertexId> rows = {2, 0, 3, 0, 2, 1}, cols = {1, 3, 3, 1, 0, 2};
  const Coo edges = borrow_coo(4, 4, {rows, cols});
  ops::PlanOptions plans;
  plans.epochs = 1;
  ops::SpmmOptions wanted;
  wanted.features = 8;
  wanted.edge_values_at_run = wanted.edge_value_gradient = false;
  Topology by_rows(edges, {}, plans);
  EXPECT_EQ(by_rows.num_rows(), 4);
  EXPECT_EQ(by_rows.spmm(gcn_adjacency, wanted).kernel().name, "spmm/cpu/rows");
  plans.allow_nondeterministic = true;
  const Coo same = borrow_coo(4, 4, {rows, cols});
  Topology scattered(same, {}, plans);
  const ops::SpmmPlan plan = scattered.spmm(gcn_adjacency, wanted);
  EXPECT_EQ(plan.kernel().name, "spmm/cpu/scatter");
  EXPECT_FALSE(same.knows_graph() || same.with_rule(EdgeRule::gcn).knows_graph());
  const Graph built = from_coo(4, 4, rows, cols);
  for (const Derivation derivation :
       {as_given, pattern, pattern_with_self_loops, gcn_adjacency, gcn_adjacency_without_loops}) {
    EXPECT_EQ(scattered.derived(derivation).with_edge_ids({}), derivation(built));
  }
  EXPECT_EQ(scattered.graph().with_edge_ids({}), built);
}

}  // namespace
}  // namespace tessera::nn
