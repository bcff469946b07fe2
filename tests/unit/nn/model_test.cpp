// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/model.hpp"

#include <cstring>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/nn/powers.hpp"
#include "tessera/ops/loss.hpp"

#include "support/gradient_check.hpp"

namespace tessera {
namespace {

using nn::ModelConfig;
using nn::ModelKind;
using test::double_placement;
using test::GradientCheck;
using test::weighted_graph;

std::vector<ModelKind> every_kind() {
  std::vector<ModelKind> kinds;
  for (const auto& entry : nn::model_kinds()) kinds.push_back(nn::parse_model_kind(entry.name));
  return kinds;
}

/// Paper defaults without kinks: a row whose features were all dropped would sit on that of ReLU.
ModelConfig smooth(ModelConfig config) {
  config.activation = ops::Activation::elu;
  return config;
}

/// With every optional part on, so that blocks take their longest form.
ModelConfig busy(ModelConfig config) {
  config.batch_norm = config.residual = true;
  if (config.kind != ModelKind::sgc) config.layers = 3;
  return config;
}

void check_model(const ModelConfig& config, const step::Input& input, step::Tensor* x,
                 const step::Context& context) {
  SCOPED_TRACE(nn::describe(config));
  nn::Model model(config, input.cols(), 3, 11, double_placement());
  model.set_needs_input_gradient(x != nullptr);
  GradientCheck check(model, context,
                      [&]() -> const step::Tensor& { return model.forward(input, context); });
  const step::Tensor* grad = check.backward();
  ASSERT_EQ(grad != nullptr, x != nullptr);
  if (x != nullptr) check.expect_gradient("features", *x, *grad, 10);
  check.backward();
  check.expect_parameter_gradients(10);
}

TEST(Model, gradients_of_every_kind) {
  step::Topology graph(weighted_graph(21, 21, 90, 1));
  step::Topology sparse(weighted_graph(21, 6, 50, 2));
  step::Tensor x = test::normal_tensor(21, 6, 3);
  step::Context context;
  context.graph = &graph;
  context.training = true;
  context.seed = 4;
  for (const ModelKind kind : every_kind()) {
    const ModelConfig paper = smooth(nn::paper_defaults(kind));
    for (const ModelConfig& config : {paper, busy(paper)}) {
      check_model(config, x, &x, context);
      check_model(config, sparse, nullptr, context);
    }
  }
}

TEST(Model, gradients_of_graph_classification) {
  step::Topology graph(weighted_graph(21, 21, 60, 1));
  std::vector<std::int32_t> graph_ids;
  for (std::int32_t i = 0; i < 21; ++i) graph_ids.push_back(i / 5);
  step::Topology pooling(step::pooling_graph(graph_ids, 5));
  step::Tensor x = test::normal_tensor(21, 6, 3);
  step::Context context;
  context.graph = &graph;
  context.pooling = &pooling;
  context.training = true;
  for (const ModelKind kind : every_kind()) {
    check_model(smooth(nn::paper_defaults(kind, "", true)), x, &x, context);
  }
}

TEST(Model, pooling_graphs_list_the_vertices_of_each_graph) {
  const std::vector<std::int32_t> graph_ids{2, 0, 2, 3, 0};
  const Graph pooling = step::pooling_graph(graph_ids, 5);
  std::vector<VertexId> vertices(graph_ids.size());
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  EXPECT_EQ(pooling, from_coo(5, 5, graph_ids, vertices));
  EXPECT_NO_THROW(pooling.validate());
  EXPECT_EQ(step::pooling_graph({}, 2).num_edges(), 0);
  for (const std::int32_t wrong : {-1, 5}) {
    EXPECT_THROW(step::pooling_graph(std::vector{0, wrong}, 5), Error);
  }
}

TEST(Model, puts_out_one_row_per_vertex_or_graph) {
  step::Topology graph(weighted_graph(21, 21, 60, 1));
  step::Topology pooling(step::pooling_graph(std::vector<std::int32_t>(21, 1), 4));
  const step::Tensor x = test::normal_tensor(21, 6, 3, {});
  step::Context context;
  context.graph = &graph;
  context.pooling = &pooling;
  for (const ModelKind kind : every_kind()) {
    SCOPED_TRACE(to_string(kind));
    nn::Model nodes(nn::paper_defaults(kind), 6, 3);
    EXPECT_EQ(nodes.forward(x, context).rows(), 21);
    nn::Model graphs(nn::paper_defaults(kind, "", true), 6, 3);
    graphs.keep_embeddings();
    const step::Tensor& logits = graphs.forward(x, context);
    EXPECT_EQ(logits.rows(), 4);
    EXPECT_EQ(logits.cols(), 3);
    EXPECT_EQ(graphs.embeddings().rows(), 4);
    EXPECT_THROW(nodes.embeddings(), Error);  // nothing asked for them
    if (kind == ModelKind::sgc) {
      EXPECT_THROW(nodes.keep_embeddings(), Error);
    } else {
      nodes.keep_embeddings();
      nodes.forward(x, context);
      EXPECT_EQ(nodes.embeddings().rows(), 21);
    }
  }
}

TEST(Model, names_its_parameters_once) {
  for (const ModelKind kind : every_kind()) {
    nn::Model model(busy(nn::paper_defaults(kind, "", true)), 6, 3);
    std::set<std::string> names;
    for (const auto& [path, tensor] : model.state()) {
      EXPECT_TRUE(names.insert(path).second) << path;
    }
  }
  nn::Model gcn(nn::paper_defaults(ModelKind::gcn), 6, 3);
  EXPECT_EQ(gcn.parameters().front().path, "convs.0.bias");
  EXPECT_EQ(gcn.num_parameters(), 6 * 16 + 16 + 16 * 3 + 3);
}

TEST(Model, weight_decay_of_the_first_layer_alone) {
  nn::Model gcn(nn::paper_defaults(ModelKind::gcn), 6, 3);
  for (const auto& [path, parameter] : gcn.parameters()) {
    EXPECT_EQ(parameter->decay, path.starts_with("convs.0.") ? 1 : 0) << path;
  }
}

TEST(Model, the_seed_decides_the_parameters) {
  const ModelConfig config = nn::paper_defaults(ModelKind::gat);
  nn::Model a(config, 6, 3, 1), b(config, 6, 3, 1), c(config, 6, 3, 2);
  bool differs = false;
  for (std::size_t p = 0; p < a.parameters().size(); ++p) {
    const step::Tensor& value = a.parameters()[p].parameter->value;
    const auto bytes = static_cast<std::size_t>(value.num_bytes());
    const auto of = [&](nn::Model& m) { return m.parameters()[p].parameter->value.bytes(); };
    EXPECT_EQ(std::memcmp(value.bytes(), of(b), bytes), 0);
    differs |= std::memcmp(value.bytes(), of(c), bytes) != 0;
  }
  EXPECT_TRUE(differs);
}

TEST(Model, precomputed_propagation_gives_the_same_output) {
  step::Topology graph(weighted_graph(21, 21, 90, 1));
  step::Topology sparse(weighted_graph(21, 6, 50, 2));
  step::Context context;
  context.graph = &graph;
  for (const ModelKind kind : {ModelKind::sgc, ModelKind::gcn}) {
    ModelConfig config = nn::paper_defaults(kind);
    config.input_dropout = 0;
    nn::Model plain(config, 6, 3, 5, double_placement());
    const step::Tensor& expected = plain.forward(sparse, context);
    config.precomputed = true;
    nn::Model precomputed(config, 6, 3, 5, double_placement());
    const step::Tensor x =
        nn::propagated(sparse, graph, nn::precomputed_hops(config), double_placement());
    const step::Tensor& actual = precomputed.forward(x, context);
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual.as<double>().data[i], expected.as<double>().data[i], 1e-12);
    }
  }
}

TEST(Model, impossible_configurations_say_why) {
  const auto rejects = [](auto change) {
    ModelConfig config = nn::paper_defaults(ModelKind::gcn);
    change(config);
    EXPECT_THROW(nn::Model(config, 6, 3), Error);
  };
  rejects([](ModelConfig& c) { c.layers = 0; });
  rejects([](ModelConfig& c) { c.hidden = -1; });
  rejects([](ModelConfig& c) { c.dropout = 1; });
  rejects([](ModelConfig& c) { c.heads = 0; });
  rejects([](ModelConfig& c) { c.precomputed = true; });  // with dropout on the features
  rejects([](ModelConfig& c) { c.kind = ModelKind::sgc; });
  EXPECT_THROW(nn::Model(nn::paper_defaults(ModelKind::gcn), 0, 3), Error);
  EXPECT_THROW(nn::parse_model_kind("transformer"), Error);

  step::Topology graph(weighted_graph(5, 5, 10, 1));
  step::Context context;
  nn::Model model(nn::paper_defaults(ModelKind::gcn), 6, 3);
  EXPECT_THROW(model.forward(test::normal_tensor(5, 6, 1, {}), context), Error);  // no graph
  context.graph = &graph;
  EXPECT_THROW(model.forward(test::normal_tensor(5, 7, 1, {}), context), Error);  // another width
  EXPECT_THROW(model.forward(test::normal_tensor(4, 6, 1, {}), context), Error);  // too few rows
}

/// One training step on the embedded citation graph.
struct Step {
  double loss = 0;
  std::vector<std::byte> gradients;
};

Step citation_step(ModelKind kind) {
  const Dataset data = embedded_dataset("citation");
  step::Topology graph(data.graph);
  nn::Model model(nn::paper_defaults(kind), data.num_features(), data.num_classes(), 3);
  nn::InputFeatures features(data.features, {}, !model.accepts_sparse());
  step::Context context;
  context.graph = &graph;
  context.training = true;
  const step::Tensor& logits = model.forward(features.input(), context);
  step::Tensor grad(logits.rows(), logits.cols());
  Step step;
  step.loss = ops::cross_entropy(logits, std::get<ClassLabels>(data.labels), data.train, grad);
  model.backward(grad, context);
  for (const auto& [path, parameter] : model.parameters()) {
    const std::byte* const bytes = parameter->gradient.bytes();
    step.gradients.insert(step.gradients.end(), bytes, bytes + parameter->gradient.num_bytes());
  }
  return step;
}

TEST(Model, a_step_on_the_embedded_citation_graph) {
  for (const ModelKind kind : every_kind()) {
    SCOPED_TRACE(to_string(kind));
    set_num_threads(1);
    const Step one = citation_step(kind);
    set_num_threads(3);
    const Step three = citation_step(kind);
    set_num_threads(0);
    EXPECT_GT(one.loss, 0.5);
    EXPECT_LT(one.loss, 10);
    EXPECT_EQ(one.loss, three.loss);
    EXPECT_TRUE(one.gradients == three.gradients) << "bits depend on the number of threads";
  }
}

}  // namespace
}  // namespace tessera
