// SPDX-License-Identifier: Apache-2.0
// GIN with features of edges against plain loops and differences, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/expect_error.hpp"
#include "support/gradient_check.hpp"
#include "tessera/core/error.hpp"
#include "tessera/nn/gin.hpp"
#include "tessera/nn/model.hpp"

namespace tessera {
namespace {

using nn::Gin;
using nn::GinOptions;
using test::double_placement;
using test::GradientCheck;
using test::normal_tensor;
using test::weighted_graph;
using testing::expect_error;

constexpr std::int64_t in = 5, out = 3;

/// Some edges twice and more, with features of their own.
Graph graph_with_repeats(VertexId rows, VertexId cols) {
  const Graph graph = weighted_graph(rows, cols, 4 * static_cast<int>(rows), 1);
  std::vector<VertexId> row_ids, col_ids;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (const VertexId col : graph.neighbours(row)) {
      for (VertexId times = 0; times <= (row + col) % 3; ++times) {
        row_ids.push_back(row);
        col_ids.push_back(col);
      }
    }
  }
  return from_coo(rows, cols, row_ids, col_ids, {}, {.duplicates = Duplicates::keep});
}

struct Scene {
  explicit Scene(const Graph& graph, std::int64_t width = 4) : topology(graph) {
    edges = std::make_shared<const step::Tensor>(normal_tensor(graph.num_edges(), width, 6));
    topology.set_edge_features(edges);
    context.graph = &topology;
    context.training = true;
    context.seed = 7;
  }

  step::Topology topology;
  std::shared_ptr<const step::Tensor> edges;
  step::Context context;
};

GinOptions options_for(std::int64_t width, bool batch_norm = false) {
  return {.in = in,
          .hidden = 7,
          .out = out,
          .eps = 0.3,
          .train_eps = true,
          .batch_norm = batch_norm,
          .edge_features = width};
}

/// (1 + eps) x_target + sum of relu(x_source + E W^T + b), and the perceptron without batch norm.
Matrix<double> by_hand(Gin& layer, const Scene& scene, const step::Tensor& x) {
  const auto value = [&](const std::string& path) {
    for (const auto& [name, parameter] : layer.parameters()) {
      if (name == path) return std::as_const(parameter->value).as<double>();
    }
    throw std::runtime_error(path);
  };
  const auto times = [](MatrixView<const double> a, MatrixView<const double> w,
                        MatrixView<const double> b) {
    Matrix<double> y(a.rows, w.rows);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t k = 0; k < w.rows; ++k) {
        y(i, k) = b(0, k);
        for (std::int64_t j = 0; j < a.cols; ++j) y(i, k) += a(i, j) * w(k, j);
      }
    }
    return y;
  };
  const Matrix<double> of_edges =
      times(scene.edges->as<double>(), value("lin.weight"), value("lin.bias"));
  const Graph& graph = scene.topology.graph();
  Matrix<double> sums(graph.num_rows(), in, 0.0);
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (std::int64_t f = 0; f < in; ++f) {
      double& sum = sums(row, f) = (1 + value("eps")(0, 0)) * x.as<double>()(row, f);
      for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
        sum += std::max(x.as<double>()(graph.col_indices()[e], f) + of_edges(e, f), 0.0);
      }
    }
  }
  Matrix<double> hidden = times(sums, value("nn.0.weight"), value("nn.0.bias"));
  for (std::int64_t i = 0; i < hidden.size(); ++i) {
    hidden.data()[i] = std::max(hidden.data()[i], 0.0);
  }
  return times(hidden, value("nn.2.weight"), value("nn.2.bias"));
}

TEST(EdgeFeatures, MakeTheMessagesOfGine) {
  for (const std::int64_t width : {1, 4, 15, 16, 17, 257}) {
    for (const VertexId vertices : {1, 15, 16, 17, 33}) {
      SCOPED_TRACE(::testing::Message() << vertices << " vertices, " << width << " of edges");
      Scene scene(graph_with_repeats(vertices, vertices), width);
      Gin layer(options_for(width), double_placement());
      layer.reset_parameters(3);
      const step::Tensor x = normal_tensor(vertices, in, 2);
      const Matrix<double> expected = by_hand(layer, scene, x);
      const auto y = layer.forward(x, scene.context).as<double>();
      for (std::int64_t i = 0; i < expected.rows(); ++i) {
        for (std::int64_t j = 0; j < out; ++j) EXPECT_NEAR(y(i, j), expected(i, j), 1e-12);
      }
    }
  }
}

TEST(EdgeFeatures, HaveGradientsOfDifferences) {
  for (const bool batch_norm : {false, true}) {
    Scene scene(graph_with_repeats(17, 17));
    Gin layer(options_for(4, batch_norm), double_placement());
    layer.reset_parameters(5);
    step::Tensor x = normal_tensor(17, in, 2);
    GradientCheck check(layer, scene.context,
                        [&]() -> const step::Tensor& { return layer.forward(x, scene.context); });
    const step::Tensor* grad = check.backward();
    ASSERT_NE(grad, nullptr);
    check.expect_gradient("input", x, *grad);
    check.backward();
    check.expect_parameter_gradients();
  }
}

TEST(EdgeFeatures, GoFromSourcesToTargets) {
  Scene scene(graph_with_repeats(13, 17));
  Gin layer(options_for(4), double_placement());
  layer.reset_parameters(5);
  step::Tensor sources = normal_tensor(17, in, 2), targets = normal_tensor(13, in, 3);
  for (const bool has_targets : {true, false}) {
    const step::Input own = has_targets ? step::Input(targets) : step::Input();
    GradientCheck check(layer, scene.context, [&]() -> const step::Tensor& {
      return layer.forward(sources, own, scene.context);
    });
    const step::Tensor* grad = check.backward();
    ASSERT_NE(grad, nullptr);
    check.expect_gradient("sources", sources, *grad);
    check.backward();
    if (has_targets) check.expect_gradient("targets", targets, *layer.target_gradient());
    check.backward();
    check.expect_parameter_gradients();
  }
}

TEST(EdgeFeatures, MayBeOfNoEdge) {
  for (const VertexId vertices : {0, 1, 16}) {
    Scene scene(weighted_graph(vertices, vertices, 0, 1));
    Gin layer(options_for(4), double_placement());
    layer.reset_parameters(5);
    const step::Tensor x = normal_tensor(vertices, in, 2);
    const step::Tensor& y = layer.forward(x, scene.context);
    ASSERT_EQ(y.rows(), vertices);
    step::Tensor grad = normal_tensor(vertices, out, 4);
    layer.backward(grad, scene.context);
    for (const auto& [path, parameter] : layer.parameters()) {
      if (path != "lin.weight") continue;
      for (std::int64_t i = 0; i < parameter->gradient.size(); ++i) {
        EXPECT_EQ(parameter->gradient.as<double>().data[i], 0) << path;
      }
    }
  }
}

TEST(EdgeFeatures, GoAlongWithAPartOfAGraph) {
  const Graph graph = graph_with_repeats(17, 17);
  Scene scene(graph);
  scene.context.training = false;
  Gin layer(options_for(4), double_placement());
  layer.reset_parameters(5);
  const step::Tensor x = normal_tensor(17, in, 2);
  const Matrix<double> whole = by_hand(layer, scene, x);
  // All of them in another order: every row keeps its number.
  std::vector<VertexId> order(17);
  for (VertexId v = 0; v < 17; ++v) order[static_cast<std::size_t>(v)] = (5 * v + 3) % 17;
  step::Topology part(scene.topology, order);
  ASSERT_NE(part.edge_features(), nullptr);
  step::Tensor moved(17, in, double_placement());
  for (std::int64_t i = 0; i < 17; ++i) {
    std::copy_n(x.as<double>().row(order[static_cast<std::size_t>(i)]), in,
                moved.as<double>().row(i));
  }
  scene.context.graph = &part;
  const auto y = layer.forward(moved, scene.context).as<double>();
  for (std::int64_t i = 0; i < 17; ++i) {
    for (std::int64_t j = 0; j < out; ++j) {
      EXPECT_NEAR(y(i, j), whole(order[static_cast<std::size_t>(i)], j), 1e-12);
    }
  }
  // Some of them: every edge has the features of one between the same two vertices.
  const std::vector<VertexId> some = {3, 16, 0, 8, 9};
  const step::Topology smaller(scene.topology, some);
  EXPECT_EQ(smaller.edge_features()->rows(), smaller.graph().num_edges());
}

TEST(EdgeFeatures, OfAnotherFormAreErrors) {
  const Graph graph = weighted_graph(7, 7, 20, 1);
  step::Topology bare(graph);
  expect_error(ErrorCode::invalid_argument, {"rows of features for", "a row for each edge"}, [&] {
    bare.set_edge_features(std::make_shared<const step::Tensor>(normal_tensor(3, 2, 1)));
  });
  step::Context context;
  context.graph = &bare;
  const step::Tensor x = normal_tensor(7, in, 2);
  Gin layer(options_for(4), double_placement());
  expect_error(ErrorCode::invalid_argument, {"edges of the graph have no features"},
               [&] { layer.forward(x, context); });
  Scene narrow(graph, 2);
  expect_error(ErrorCode::invalid_argument, {"2 features"},
               [&] { layer.forward(x, narrow.context); });
  EXPECT_FALSE(layer.accepts_sparse());
}

TEST(EdgeFeatures, AreWhatGineIsMadeFor) {
  nn::ModelConfig config = nn::paper_defaults(nn::ModelKind::gine);
  expect_error(ErrorCode::invalid_argument, {"gine without features of edges", "gin"},
               [&] { nn::Model(config, 6, 3); });
  config.edge_features = 4;
  nn::Model model(config, 6, 3, 1, double_placement());
  Scene scene(graph_with_repeats(15, 15));
  EXPECT_EQ(model.forward(normal_tensor(15, 6, 2), scene.context).rows(), 15);
  Scene other(graph_with_repeats(15, 15), 3);
  expect_error(ErrorCode::invalid_argument, {"edges have 3 features, the model was made for 4"},
               [&] { model.forward(normal_tensor(15, 6, 2), other.context); });
}

}  // namespace
}  // namespace tessera
