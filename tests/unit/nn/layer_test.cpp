// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/layer.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/dense.hpp"
#include "tessera/nn/model.hpp"

#include "support/gradient_check.hpp"

namespace tessera::nn {
namespace {

TEST(Tensor, resizing_keeps_the_memory_where_it_suffices) {
  Tensor tensor(10, 4);
  const std::byte* const memory = tensor.bytes();
  tensor.resize(3, 5);
  EXPECT_EQ(tensor.bytes(), memory);
  EXPECT_EQ(tensor.num_bytes(), 3 * 5 * 4);
  tensor.resize(10, 4);
  EXPECT_EQ(tensor.bytes(), memory);
  tensor.resize(0, 7);
  EXPECT_EQ(tensor.size(), 0);
  EXPECT_THROW(tensor.resize(-1, 4), Error);
}

TEST(Tensor, knows_its_element_type) {
  Tensor tensor(2, 2);
  tensor.fill(1.5);
  EXPECT_EQ(tensor.as<float>()(1, 1), 1.5f);
  EXPECT_THROW(tensor.as<double>(), Error);
  EXPECT_THROW(tensor.item(), Error);
  Tensor one(1, 1, test::double_placement());
  one.fill(0.1);
  EXPECT_EQ(one.item(), 0.1);
}

TEST(Parameter, starts_within_its_bound) {
  Parameter weight("weight", 50, 40, Initial::glorot(40, 50));
  weight.reset(Random(3));
  const double bound = std::sqrt(6.0 / 90);
  double lowest = 0, highest = 0;
  for (std::int64_t i = 0; i < weight.value.size(); ++i) {
    const double value = weight.value.as<float>().data[i];
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  EXPECT_GE(lowest, -bound);
  EXPECT_LE(highest, bound);
  EXPECT_LT(lowest, -0.9 * bound);
  EXPECT_GT(highest, 0.9 * bound);
}

TEST(Topology, makes_each_plan_and_matrix_once) {
  Topology topology(test::weighted_graph(17, 17, 60, 1));
  ops::SpmmOptions options;
  options.features = 8;
  // Copies of a plan share its graph.
  const ops::SpmmPlan plan = topology.spmm(gcn_adjacency, options);
  const auto is_same = [&](const ops::SpmmPlan& other) { return &other.graph() == &plan.graph(); };
  EXPECT_TRUE(is_same(topology.spmm(gcn_adjacency, options)));
  EXPECT_FALSE(is_same(topology.spmm(pattern, options)));
  options.features = 9;
  EXPECT_FALSE(is_same(topology.spmm(gcn_adjacency, options)));
  EXPECT_EQ(&topology.derived(pattern), &topology.derived(pattern));
  EXPECT_FALSE(topology.derived(pattern).is_weighted());
}

TEST(Topology, self_loops_of_a_rectangular_graph) {
  const Graph looped = pattern_with_self_loops(test::weighted_graph(5, 9, 12, 1));
  looped.validate();
  for (VertexId i = 0; i < 5; ++i) {
    const auto sources = looped.neighbours(i);
    EXPECT_TRUE(std::find(sources.begin(), sources.end(), i) != sources.end());
  }
}

TEST(Input, dropout_of_sparse_features_acts_on_their_entries) {
  Topology sparse(test::weighted_graph(300, 40, 2000, 1));
  InputDropout dropout(0.5, {});
  Context context;
  EXPECT_TRUE(dropout.forward(sparse, 0, context) == Input(sparse));
  context.training = true;
  const ops::ConstOperand kept = dropout.forward(sparse, 0, context).values();
  ASSERT_EQ(kept.rows, sparse.graph().num_edges());
  std::int64_t zeros = 0;
  for (std::int64_t k = 0; k < kept.rows; ++k) {
    const float value = kept.as<float>()(k, 0);
    if (value == 0) {
      ++zeros;
    } else {
      EXPECT_FLOAT_EQ(value, 2 * sparse.graph().values()[k]);
    }
  }
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(kept.rows), 0.5, 0.05);
}

TEST(Input, a_data_set_without_features_is_refused) {
  EXPECT_THROW(InputFeatures(Features{}), Error);
}

TEST(Sequential, widths_must_meet) {
  Sequential stack;
  stack.add("a", std::make_unique<Linear>(LinearOptions{4, 3}));
  EXPECT_THROW(stack.add("b", std::make_unique<Linear>(LinearOptions{4, 3})), Error);
  EXPECT_THROW(Residual(std::make_unique<Linear>(LinearOptions{4, 3})), Error);
}

TEST(Layer, numbers_and_names_reach_every_part) {
  Sequential stack;
  stack.add("a", std::make_unique<Linear>(LinearOptions{4, 4}));
  stack.add("", std::make_unique<Residual>(std::make_unique<Linear>(LinearOptions{4, 4})));
  EXPECT_EQ(stack.assign_numbers(100), 100u + 4 * 4);
  EXPECT_NE(stack.layer(0).number(), stack.layer(1).number());
  const auto parameters = stack.parameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].path, "a.weight");
  EXPECT_EQ(parameters[2].path, "weight");
}

/// What `Model` and its buffers take after a step, against the prediction.
TEST(PredictedMemory, is_close_to_what_a_step_takes) {
  constexpr VertexId vertices = 3000;
  constexpr std::int64_t width = 100;
  const Graph matrix = test::weighted_graph(vertices, vertices, 20000, 1);
  for (const auto& entry : model_kinds()) {
    SCOPED_TRACE(entry.name);
    const ModelConfig config = paper_defaults(parse_model_kind(entry.name));
    const MemoryUse before = host_memory_use();
    Topology graph(with_self_loops(matrix));
    Tensor x = test::normal_tensor(vertices, width, 2, {});
    Model model(config, width, 7);
    Context context;
    context.graph = &graph;
    context.training = true;
    model.forward(x, context);
    Tensor grad(vertices, 7);
    grad.fill(1);
    model.backward(grad, context);
    const auto used = static_cast<double>(host_memory_use().current_bytes - before.current_bytes);
    const DataShape shape{vertices, matrix.num_edges(), width, 0, 7, 1};
    const auto predicted = static_cast<double>(predicted_memory(config, shape).total());
    EXPECT_GT(predicted, 0.7 * used);
    EXPECT_LT(predicted, 2.0 * used);
  }
}

}  // namespace
}  // namespace tessera::nn
