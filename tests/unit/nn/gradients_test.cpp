// SPDX-License-Identifier: Apache-2.0
// Every layer's gradients against central differences in double, on directed weighted graphs, with
// dropout on: the counter draws the same elements in every pass.
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/sequential.hpp"

#include "support/gradient_check.hpp"
#include "support/layer_zoo.hpp"

namespace tessera {
namespace {

using test::double_placement;
using test::GradientCheck;
using test::normal_tensor;
using test::weighted_graph;

constexpr std::int64_t in = 5;

step::Context training_context(step::Topology& graph) {
  step::Context context;
  context.graph = &graph;
  context.training = true;
  context.seed = 7;
  context.step = 3;
  return context;
}

TEST(LayerGradients, dense_input) {
  for (const VertexId vertices : {1, 17, 33}) {
    step::Topology graph(weighted_graph(vertices, vertices, 5 * vertices, 1));
    const step::Context context = training_context(graph);
    for (const auto& entry : test::layer_zoo()) {
      // The variance of a single row is 0, and so is no place for differences.
      if (vertices == 1 && (entry.name == "batch norm" || entry.name.starts_with("gin"))) continue;
      SCOPED_TRACE(entry.name + ", " + std::to_string(vertices) + " vertices");
      auto layer = entry.make(in, double_placement());
      layer->reset_parameters(5);
      step::Tensor x = normal_tensor(vertices, in, 2);
      GradientCheck check(*layer, context,
                          [&]() -> const step::Tensor& { return layer->forward(x, context); });
      const step::Tensor* grad = check.backward();
      ASSERT_NE(grad, nullptr);
      check.expect_gradient("input", x, *grad);
      check.backward();
      check.expect_parameter_gradients();
    }
  }
}

TEST(LayerGradients, a_graph_without_vertices) {
  step::Topology graph(weighted_graph(0, 0, 0, 1));
  const step::Context context = training_context(graph);
  for (const auto& entry : test::layer_zoo()) {
    SCOPED_TRACE(entry.name);
    auto layer = entry.make(in, double_placement());
    const step::Tensor x(0, in, double_placement());
    const step::Tensor& output = layer->forward(x, context);
    EXPECT_EQ(output.rows(), 0);
    EXPECT_EQ(output.cols(), layer->output_width());
    step::Tensor grad(0, output.cols(), double_placement());
    const step::Tensor* const grad_input = layer->backward(grad, context);
    ASSERT_NE(grad_input, nullptr);
    EXPECT_EQ(grad_input->rows(), 0);
    for (const auto& [path, parameter] : layer->parameters()) {
      for (std::int64_t i = 0; i < parameter->gradient.size(); ++i) {
        EXPECT_EQ(parameter->gradient.as<double>().data[i], 0) << path;
      }
    }
  }
}

TEST(LayerGradients, sparse_input) {
  constexpr VertexId vertices = 17;
  step::Topology graph(weighted_graph(vertices, vertices, 60, 1));
  step::Topology features(weighted_graph(vertices, in, 40, 4));
  const step::Context context = training_context(graph);
  for (const auto& entry : test::layer_zoo()) {
    SCOPED_TRACE(entry.name);
    auto layer = entry.make(in, double_placement());
    layer->reset_parameters(5);
    if (!layer->accepts_sparse()) {
      EXPECT_THROW(layer->forward(features, context), Error);
      continue;
    }
    GradientCheck check(*layer, context,
                        [&]() -> const step::Tensor& { return layer->forward(features, context); });
    EXPECT_EQ(check.backward(), nullptr);
    check.expect_parameter_gradients();
  }
}

TEST(LayerGradients, no_gradient_of_the_input_on_request) {
  step::Topology graph(weighted_graph(17, 17, 60, 1));
  const step::Context context = training_context(graph);
  for (const auto& entry : test::layer_zoo()) {
    if (entry.name == "batch norm" || entry.name == "activation") continue;
    SCOPED_TRACE(entry.name);
    auto layer = entry.make(in, double_placement());
    layer->reset_parameters(5);
    layer->set_needs_input_gradient(false);
    const step::Tensor x = normal_tensor(17, in, 2);
    GradientCheck check(*layer, context,
                        [&]() -> const step::Tensor& { return layer->forward(x, context); });
    EXPECT_EQ(check.backward(), nullptr);
    check.expect_parameter_gradients();
  }
}

void check_pair(nn::PairLayer& layer, const step::Context& context, step::Tensor& x_source,
                step::Tensor* x_target) {
  const step::Input targets = x_target == nullptr ? step::Input() : step::Input(*x_target);
  GradientCheck check(layer, context, [&]() -> const step::Tensor& {
    return layer.forward(x_source, targets, context);
  });
  const step::Tensor* grad = check.backward();
  ASSERT_NE(grad, nullptr);
  check.expect_gradient("sources", x_source, *grad);
  check.backward();
  if (x_target != nullptr) {
    ASSERT_NE(layer.target_gradient(), nullptr);
    check.expect_gradient("targets", *x_target, *layer.target_gradient());
  } else {
    EXPECT_EQ(layer.target_gradient(), nullptr);
  }
  check.backward();
  check.expect_parameter_gradients();
}

TEST(LayerGradients, bipartite) {
  step::Topology graph(weighted_graph(13, 17, 60, 1));
  const step::Context context = training_context(graph);
  step::Tensor x_source = normal_tensor(17, in, 2);
  step::Tensor x_target = normal_tensor(13, 4, 3);
  for (auto& [name, layer] : test::pair_zoo(in, 4, double_placement())) {
    SCOPED_TRACE(name);
    layer->reset_parameters(5);
    check_pair(*layer, context, x_source, &x_target);
    if (name != "gatv2") check_pair(*layer, context, x_source, nullptr);
  }
}

TEST(LayerGradients, bipartite_with_shared_weights) {
  step::Topology graph(weighted_graph(19, 15, 60, 1));
  const step::Context context = training_context(graph);
  step::Tensor x_source = normal_tensor(15, in, 2);
  step::Tensor x_target = normal_tensor(19, in, 3);
  for (auto& [name, layer] : test::shared_pair_zoo(in, double_placement())) {
    SCOPED_TRACE(name);
    layer->reset_parameters(5);
    check_pair(*layer, context, x_source, &x_target);
    if (name != "gatv2") check_pair(*layer, context, x_source, nullptr);
  }
}

TEST(LayerGradients, readout) {
  const std::vector<std::int32_t> graph_ids = {2, 0, 0, 2, 2, 4, 0, 4, 2};
  step::Topology pooling(step::pooling_graph(graph_ids, 5));
  step::Context context;
  context.pooling = &pooling;
  for (const auto reduction : {ops::Reduction::sum, ops::Reduction::mean, ops::Reduction::max}) {
    SCOPED_TRACE(ops::to_string(reduction));
    nn::Readout layer({3, reduction}, double_placement());
    step::Tensor x = normal_tensor(9, 3, 2);
    GradientCheck check(layer, context,
                        [&]() -> const step::Tensor& { return layer.forward(x, context); });
    const step::Tensor* grad = check.backward();
    ASSERT_NE(grad, nullptr);
    check.expect_gradient("input", x, *grad);
  }
}

}  // namespace
}  // namespace tessera
