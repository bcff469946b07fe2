// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "support/gradient_check.hpp"
#include "tessera/core/error.hpp"
#include "tessera/links/split.hpp"
#include "tessera/nn/link_model.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/nn/powers.hpp"

namespace tessera::nn {
namespace {

constexpr VertexId vertices = 17;
constexpr std::int64_t width = 5;

/// Of a symmetric graph of ones, in which some vertices have no neighbours.
Graph plain_graph() {
  std::vector<VertexId> rows, cols;
  const Random random(9);
  for (std::uint64_t k = 0; k < 30; ++k) {
    const auto a = static_cast<VertexId>(random.below(2 * k, vertices - 3));
    const auto b = static_cast<VertexId>(random.below(2 * k + 1, vertices - 3));
    if (a == b) continue;
    rows.insert(rows.end(), {a, b});
    cols.insert(cols.end(), {b, a});
  }
  return from_coo(vertices, vertices, rows, cols, {}, {.duplicates = Duplicates::first});
}

/// The formula, by the numbers of neighbours.
Matrix<double> expected(const Graph& graph, const Matrix<double>& embedding, int layers) {
  Matrix<double> x(vertices, width), sum(vertices, width);
  std::copy_n(embedding.data(), embedding.size(), x.data());
  std::copy_n(embedding.data(), embedding.size(), sum.data());
  for (int layer = 0; layer < layers; ++layer) {
    Matrix<double> next(vertices, width, 0.0);
    for (VertexId v = 0; v < vertices; ++v) {
      for (const VertexId u : graph.neighbours(v)) {
        const double degrees = static_cast<double>(graph.degree(v) * graph.degree(u));
        for (std::int64_t j = 0; j < width; ++j) next(v, j) += x(u, j) / std::sqrt(degrees);
      }
    }
    x = std::move(next);
    for (std::int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += x.data()[i];
  }
  for (std::int64_t i = 0; i < sum.size(); ++i) sum.data()[i] /= layers + 1;
  return sum;
}

TEST(LightGcn, is_the_mean_of_its_layers) {
  const Graph graph = plain_graph();
  for (const int layers : {1, 2, 3}) {
    LightGcn layer({vertices, width, layers}, test::double_placement());
    layer.reset_parameters(3);
    step::Topology topology(graph);
    const step::Tensor x(vertices, vertices, test::double_placement());
    const step::Tensor& y = layer.forward(x, {.graph = &topology});
    Matrix<double> embedding(vertices, width);
    const auto parameters = layer.parameters();
    ASSERT_EQ(parameters.size(), 1u);
    EXPECT_EQ(parameters[0].path, "embedding.weight");
    const auto values = parameters[0].parameter->value.as<double>();
    for (VertexId v = 0; v < vertices; ++v) {
      for (std::int64_t j = 0; j < width; ++j) embedding(v, j) = values(v, j);
    }
    const Matrix<double> wanted = expected(graph, embedding, layers);
    for (VertexId v = 0; v < vertices; ++v) {
      for (std::int64_t j = 0; j < width; ++j) {
        // Scales of graphs are of single precision.
        EXPECT_NEAR(y.as<double>()(v, j), wanted(v, j), 1e-7) << layers << " layers";
      }
    }
  }
}

TEST(LightGcn, has_the_gradient_of_finite_differences_on_weighted_graphs) {
  step::Topology graph(test::weighted_graph(vertices, vertices, 60, 2));
  step::Context context;
  context.graph = &graph;
  context.training = true;
  for (const std::int64_t layers : {1, 3}) {
    LightGcn layer({vertices, width, layers}, test::double_placement());
    layer.set_needs_input_gradient(false);
    layer.reset_parameters(5);
    const step::Tensor x(vertices, vertices, test::double_placement());
    test::GradientCheck check(layer, context,
                              [&]() -> const step::Tensor& { return layer.forward(x, context); });
    check.backward();
    check.expect_parameter_gradients();
  }
}

/// Of a variational encoder of means and deviations.
struct Variational {
  Variational()
      : graph(plain_graph()),
        pairs(links::as_matrix({{0, 3, 3, 7}, {5, 4, 4, 2}})),
        ends(vertices, pairs.cols()) {
    model = std::make_unique<LinkModel>(
        std::make_unique<Model>(config(), features, 2 * width, 1, test::double_placement()),
        LinkModelOptions{.variational = true});
    model->reset_parameters(4);
    ends.list(pairs);
    context.graph = &graph;
    context.pairs = pairs;
    context.pair_ends = &ends;
    context.seed = 8;
    context.loss = &loss;
  }
  static ModelConfig config() {
    ModelConfig config;
    config.hidden = 6;
    return config;
  }

  static constexpr std::int64_t features = 4;
  step::Topology graph;
  Matrix<VertexId> pairs;
  ops::PairEnds ends;
  std::unique_ptr<LinkModel> model;
  Context context;
  double loss = 0;
};

TEST(VariationalLinkModel, draws_in_training_and_takes_the_means_otherwise) {
  Variational scene;
  const step::Tensor x = test::normal_tensor(vertices, Variational::features, 7);
  const auto score = [&](bool training, std::uint32_t step) {
    scene.context.training = training;
    scene.context.step = step;
    return scene.model->forward(x, scene.context).as<double>()(0, 0);
  };
  EXPECT_EQ(scene.model->decoder().input_width(), width);
  EXPECT_EQ(score(false, 0), score(false, 1));
  EXPECT_EQ(score(true, 1), score(true, 1));
  EXPECT_NE(score(true, 0), score(true, 1));
  EXPECT_NE(score(true, 0), score(false, 0));
}

/// Where no loss comes from the scores, the gradients are those of the divergence alone.
TEST(VariationalLinkModel, adds_the_divergence_to_the_loss_with_its_gradients) {
  Variational scene;
  scene.context.training = true;
  const step::Tensor x = test::normal_tensor(vertices, Variational::features, 7);
  const auto divergence = [&] {
    scene.loss = 0;
    const step::Tensor& scores = scene.model->forward(x, scene.context);
    step::Tensor none(test::double_placement());
    none.copy_from(Matrix<double>(scores.rows(), 1, 0.0));
    scene.model->backward(none, scene.context);
    return scene.loss;
  };
  EXPECT_GT(divergence(), 0);
  for (const auto& [path, parameter] : scene.model->parameters()) {
    divergence();
    const MatrixView<double> value = parameter->value.as<double>();
    const double analytic = parameter->gradient.as<double>()(0, 0);
    const double saved = value(0, 0);
    constexpr double step = 1e-5;
    value(0, 0) = saved + step;
    const double above = divergence();
    value(0, 0) = saved - step;
    const double below = divergence();
    value(0, 0) = saved;
    EXPECT_NEAR(analytic, (above - below) / (2 * step), 1e-8) << path;
  }
}

TEST(VariationalLinkModel, refuses_an_encoder_of_an_odd_width) {
  EXPECT_THROW(LinkModel(std::make_unique<Model>(Variational::config(), 4, 5, 1),
                         LinkModelOptions{.variational = true}),
               Error);
}

}  // namespace
}  // namespace tessera::nn
