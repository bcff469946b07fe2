// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/gradient_check.hpp"
#include "tessera/graph/relation_graphs.hpp"
#include "tessera/nn/relational_gat.hpp"
#include "tessera/nn/relational_model.hpp"
#include "tessera/nn/relational_sage.hpp"

namespace tessera {
namespace {

using test::double_placement;
using test::GradientCheck;
using test::normal_tensor;

struct Edge {
  VertexId source, target;
};

/// One of a few relations of a small graph, by the numbers of the vertices within their kinds.
struct ListedRelation {
  Relation relation;
  std::vector<Edge> edges;
};

/// A kind without vertices, one that no relation ends in, a relation without edges, one between a
/// kind and itself, one that lists an edge twice, and vertices without edges.
const std::vector<VertexKind> kinds{{"a", 4}, {"none", 0}, {"b", 3}, {"c", 2}};
const std::vector<ListedRelation>& listed() {
  static const std::vector<ListedRelation> all{{{"to", 0, 2}, {{0, 0}, {1, 0}, {3, 0}, {2, 2}}},
                                               {{"back", 2, 0}, {{0, 0}, {0, 0}, {1, 0}, {2, 3}}},
                                               {{"self", 0, 0}, {{0, 0}, {1, 2}, {2, 2}, {3, 2}}},
                                               {{"empty", 0, 2}, {}},
                                               {{"of none", 1, 2}, {}},
                                               {{"from c", 3, 2}, {{0, 1}, {1, 1}, {1, 0}}}};
  return all;
}

RelationalGraph small_graph() {
  std::vector<Relation> relations;
  std::vector<Graph> graphs;
  for (const ListedRelation& one : listed()) {
    std::vector<VertexId> rows, columns;
    for (const Edge& edge : one.edges) {
      rows.push_back(edge.target);
      columns.push_back(edge.source);
    }
    relations.push_back(one.relation);
    graphs.push_back(from_coo(kinds[static_cast<std::size_t>(one.relation.target)].count,
                              kinds[static_cast<std::size_t>(one.relation.source)].count, rows,
                              columns, {}, {.duplicates = Duplicates::keep}));
  }
  return {kinds, relations, graphs};
}
constexpr VertexId num_vertices = 9;

/// The graphs of a step, and a context that lists them.
struct Scene {
  explicit Scene(const std::vector<Graph>& given) {
    for (const Graph& graph : given) {
      graphs.push_back(std::make_unique<step::Topology>(graph));
      list.push_back(graphs.back().get());
    }
    context.graphs = list;
    context.training = true;
  }

  std::vector<std::unique_ptr<step::Topology>> graphs;
  std::vector<step::Topology*> list;
  step::Context context;
};

std::vector<Graph> layer_graphs(const RelationalGraph& graph, bool attends) {
  const RelationSegments segments = segments_of(graph);
  const KindGraphs of_kinds = kinds_of(graph);
  std::vector<Graph> graphs{segments.edges, segments.relations, segments.targets, of_kinds.kinds,
                            of_kinds.relations};
  if (!attends) return graphs;
  const RelationSources sources = sources_of(segments);
  graphs.insert(graphs.end(),
                {sources.vertices, sources.relations, sources.edges, sources.targets});
  return graphs;
}

MatrixView<const double> value_of(nn::Layer& layer, const std::string& name) {
  for (const nn::NamedParameter& one : layer.parameters()) {
    if (one.path == name) return std::as_const(one.parameter->value).as<double>();
  }
  ADD_FAILURE() << name;
  return {};
}

using Row = std::vector<double>;

/// x W, where row `relation` of `weights` is W, row by row.
Row product(MatrixView<const double> x, VertexId vertex, MatrixView<const double> weights,
            std::int64_t relation, std::int64_t out) {
  Row y(static_cast<std::size_t>(out), 0.0);
  for (std::int64_t i = 0; i < x.cols; ++i) {
    for (std::int64_t j = 0; j < out; ++j) {
      y[static_cast<std::size_t>(j)] += x(vertex, i) * weights(relation, i * out + j);
    }
  }
  return y;
}

void expect_rows(const step::Tensor& found, const Matrix<double>& expected) {
  ASSERT_EQ(found.rows(), expected.rows());
  ASSERT_EQ(found.cols(), expected.cols());
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j < expected.cols(); ++j) {
      EXPECT_NEAR(found.as<double>()(i, j), expected(i, j), 1e-12) << i << ", " << j;
    }
  }
}

/// Relation by relation and edge by edge.
Matrix<double> sage_reference(nn::Layer& layer, const step::Tensor& x, std::int64_t out) {
  const RelationalGraph graph = small_graph();
  const auto left = value_of(layer, "lin_l.weight"), right = value_of(layer, "lin_r.weight");
  const auto bias = value_of(layer, "bias");
  const auto rows = x.as<double>();
  Matrix<double> y(num_vertices, out, 0.0);
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    const auto& [relation, edges] = listed()[static_cast<std::size_t>(r)];
    const VertexId sources = graph.first_vertex(relation.source);
    const VertexId targets = graph.first_vertex(relation.target);
    for (VertexId t = 0; t < graph.graph(r).num_rows(); ++t) {
      const Row own = product(rows, targets + t, right, r, out);
      for (std::int64_t j = 0; j < out; ++j) {
        y(targets + t, j) += own[static_cast<std::size_t>(j)] + bias(r, j);
      }
      const auto degree = static_cast<double>(
          std::count_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.target == t; }));
      for (const Edge& edge : edges) {
        if (edge.target != t) continue;
        const Row message = product(rows, sources + edge.source, left, r, out);
        for (std::int64_t j = 0; j < out; ++j) {
          y(targets + t, j) += message[static_cast<std::size_t>(j)] / degree;
        }
      }
    }
  }
  return y;
}

Matrix<double> gat_reference(nn::Layer& layer, const step::Tensor& x, std::int64_t out,
                             std::int64_t heads) {
  const RelationalGraph graph = small_graph();
  const auto of_source = value_of(layer, "lin_src.weight");
  const auto of_target = value_of(layer, "lin_dst.weight");
  const auto source_score = value_of(layer, "att_src"), target_score = value_of(layer, "att_dst");
  const auto bias = value_of(layer, "bias");
  const auto rows = x.as<double>();
  Matrix<double> y(num_vertices, out, 0.0);
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    const auto& [relation, edges] = listed()[static_cast<std::size_t>(r)];
    const VertexId sources = graph.first_vertex(relation.source);
    const VertexId targets = graph.first_vertex(relation.target);
    for (VertexId t = 0; t < graph.graph(r).num_rows(); ++t) {
      for (std::int64_t j = 0; j < out; ++j) y(targets + t, j) += bias(r, j);
      const Row target = product(rows, targets + t, of_target, r, out);
      for (std::int64_t j = 0; j < out; ++j) {
        const std::int64_t width = out / heads, first = j / width * width;
        double numerator = 0, denominator = 0;
        for (const Edge& edge : edges) {
          if (edge.target != t) continue;
          const Row source = product(rows, sources + edge.source, of_source, r, out);
          double score = 0;
          for (std::int64_t c = first; c < first + width; ++c) {
            const auto k = static_cast<std::size_t>(c);
            score += source[k] * source_score(r, c) + target[k] * target_score(r, c);
          }
          const double weight = std::exp(score > 0 ? score : 0.2 * score);
          numerator += weight * source[static_cast<std::size_t>(j)];
          denominator += weight;
        }
        if (denominator > 0) y(targets + t, j) += numerator / denominator;
      }
    }
  }
  return y;
}

struct Form {
  std::int64_t in, out, heads;
};
constexpr Form forms[] = {{1, 1, 1}, {3, 4, 2}, {5, 17, 1}, {4, 6, 3}};

nn::RelationalSageOptions sage_of(const Form& form) {
  return {.in = form.in, .out = form.out, .relations = std::ssize(listed())};
}
nn::RelationalGatOptions gat_of(const Form& form) {
  return {.in = form.in, .out = form.out, .relations = std::ssize(listed()), .heads = form.heads};
}

TEST(RelationalSage, AgreesWithItsFormula) {
  Scene scene(layer_graphs(small_graph(), false));
  for (const Form& form : forms) {
    nn::RelationalSage layer(sage_of(form), double_placement());
    layer.reset_parameters(3);
    const step::Tensor x = normal_tensor(num_vertices, form.in, 5);
    expect_rows(layer.forward(x, scene.context), sage_reference(layer, x, form.out));
  }
}

TEST(RelationalSage, GradientsMatchDifferences) {
  Scene scene(layer_graphs(small_graph(), false));
  for (const Form& form : forms) {
    nn::RelationalSageOptions options = sage_of(form);
    options.output.activation = ops::Activation::elu;
    nn::RelationalSage layer(options, double_placement());
    layer.reset_parameters(3);
    step::Tensor x = normal_tensor(num_vertices, form.in, 5);
    GradientCheck check(layer, scene.context,
                        [&]() -> const step::Tensor& { return layer.forward(x, scene.context); });
    const step::Tensor* const grad_x = check.backward();
    ASSERT_NE(grad_x, nullptr);
    check.expect_parameter_gradients();
    check.expect_gradient("x", x, *grad_x);
  }
}

TEST(RelationalGat, AgreesWithItsFormula) {
  Scene scene(layer_graphs(small_graph(), true));
  for (const Form& form : forms) {
    nn::RelationalGat layer(gat_of(form), double_placement());
    layer.reset_parameters(3);
    const step::Tensor x = normal_tensor(num_vertices, form.in, 5);
    expect_rows(layer.forward(x, scene.context), gat_reference(layer, x, form.out, form.heads));
  }
}

TEST(RelationalGat, GradientsMatchDifferences) {
  Scene scene(layer_graphs(small_graph(), true));
  for (const Form& form : forms) {
    for (const double dropout : {0.0, 0.4}) {
      nn::RelationalGatOptions options = gat_of(form);
      options.attention_dropout = dropout;
      nn::RelationalGat layer(options, double_placement());
      layer.reset_parameters(3);
      step::Tensor x = normal_tensor(num_vertices, form.in, 5);
      GradientCheck check(layer, scene.context,
                          [&]() -> const step::Tensor& { return layer.forward(x, scene.context); });
      const step::Tensor* const grad_x = check.backward();
      ASSERT_NE(grad_x, nullptr);
      check.expect_parameter_gradients();
      check.expect_gradient("x", x, *grad_x);
    }
  }
}

constexpr nn::RelationalKind all_kinds[] = {nn::RelationalKind::rgcn, nn::RelationalKind::sage,
                                            nn::RelationalKind::gat};

/// How vertices become rows: kinds a and c have features, or all, or none.
struct Holder {
  std::vector<bool> has_features;
  nn::RelationalShape shape;
};
std::vector<Holder> holders() {
  const std::int64_t relations = std::ssize(listed());
  return {{{true, false, false, true}, {3, 2, 3, relations, 2}},
          {{true, true, true, true}, {3, 4, 0, relations, 2}},
          {{false, false, false, false}, {0, 0, num_vertices, relations, 2}}};
}

step::Tensor input_of(const Holder& holder) {
  std::int64_t rows = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    rows += holder.has_features[k] ? kinds[k].count : 0;
  return normal_tensor(std::max<std::int64_t>(rows, 1),
                       std::max<std::int64_t>(holder.shape.features, 1), 7);
}

TEST(KindEncoder, MapsFeaturesAndLearnsTheRest) {
  const Holder holder = holders().front();
  Scene scene(nn::encoder_graphs(small_graph(), holder.has_features));
  nn::KindEncoder encoder(holder.shape, 4, double_placement());
  encoder.reset_parameters(2);
  const step::Tensor x = input_of(holder);
  const auto weight = value_of(encoder, "weight"), bias = value_of(encoder, "bias");
  const auto embedding = value_of(encoder, "embedding.weight");
  Matrix<double> expected(num_vertices, 4, 0.0);
  for (VertexId v = 0; v < num_vertices; ++v) {
    const bool is_embedded = v >= 4 && v < 7;
    const std::int64_t kind = v < 4 ? 0 : 1;
    const Row mapped =
        is_embedded ? Row() : product(x.as<double>(), v < 4 ? v : v - 3, weight, kind, 4);
    for (std::int64_t j = 0; j < 4; ++j) {
      expected(v, j) =
          is_embedded ? embedding(v - 4, j) : mapped[static_cast<std::size_t>(j)] + bias(kind, j);
    }
  }
  expect_rows(encoder.forward(x, scene.context), expected);
}

TEST(RelationalModel, GradientsMatchDifferences) {
  for (const nn::RelationalKind kind : all_kinds) {
    for (const Holder& holder : holders()) {
      SCOPED_TRACE(::testing::Message() << to_string(kind) << ", " << holder.shape.features);
      const nn::RelationalModelOptions options{
          .kind = kind, .layers = 2, .hidden = 4, .heads = 2, .dropout = 0.3};
      Scene scene(nn::model_graphs(options, small_graph(), holder.has_features, 2));
      nn::RelationalModel model(options, holder.shape, double_placement());
      model.reset_parameters(4);
      const step::Tensor x = input_of(holder);
      GradientCheck check(model, scene.context,
                          [&]() -> const step::Tensor& { return model.forward(x, scene.context); });
      check.backward();
      check.expect_parameter_gradients();
    }
  }
}

TEST(RelationalModel, ItsLastLayerNeedsTheRelationsIntoOneKindAlone) {
  const Holder holder = holders().front();
  for (const nn::RelationalKind kind : all_kinds) {
    const nn::RelationalModelOptions options{.kind = kind, .layers = 3, .hidden = 4, .heads = 2};
    std::vector<Graph> graphs = nn::model_graphs(options, small_graph(), holder.has_features, 2);
    nn::RelationalModel model(options, holder.shape, double_placement());
    ASSERT_EQ(model.num_graphs(), std::ssize(graphs));
    model.reset_parameters(4);
    const step::Tensor x = input_of(holder);
    Scene scene(graphs);
    scene.context.training = false;
    step::Tensor expected(double_placement());
    expected.copy_from(model.forward(x, scene.context));
    EXPECT_EQ(expected.rows(), 3);
    // The graphs of the layer before it, which are whole.
    const std::ptrdiff_t of_layer = (std::ssize(graphs) - 4) / 3;
    std::copy_n(graphs.begin() + 3 + of_layer, of_layer, graphs.begin() + 3 + 2 * of_layer);
    Scene whole(graphs);
    whole.context.training = false;
    const step::Tensor& y = model.forward(x, whole.context);
    for (std::int64_t k = 0; k < y.size(); ++k) {
      EXPECT_DOUBLE_EQ(y.as<double>().data[k], expected.as<double>().data[k]);
    }
  }
}

TEST(RelationalModel, RunsWithoutRelationsAndWithManyWithoutEdges) {
  for (const nn::RelationalKind kind : all_kinds) {
    for (const std::int32_t count : {0, 1, 500}) {
      std::vector<Relation> relations;
      std::vector<Graph> graphs;
      for (std::int32_t r = 0; r < count; ++r) {
        relations.push_back({"r" + std::to_string(r), 0, 0});
        graphs.push_back(from_coo(3, 3, std::vector<VertexId>{}, std::vector<VertexId>{}));
      }
      const RelationalGraph graph({{"only", 3}}, relations, graphs);
      const nn::RelationalModelOptions options{.kind = kind, .hidden = 4, .heads = 2};
      Scene scene(nn::model_graphs(options, graph, {true}, 0));
      nn::RelationalModel model(options, {2, 1, 0, count, 3}, double_placement());
      model.reset_parameters(1);
      const step::Tensor& y = model.forward(normal_tensor(3, 2, 1), scene.context);
      ASSERT_EQ(y.rows(), 3);
      for (std::int64_t k = 0; k < y.size(); ++k) {
        EXPECT_TRUE(std::isfinite(y.as<double>().data[k]));
      }
    }
  }
}

TEST(RelationalModel, WhatCannotBeIsAnError) {
  using testing::expect_error;
  const auto invalid = ErrorCode::invalid_argument;
  const nn::RelationalShape shape = holders().front().shape;
  const auto make = [&](const nn::RelationalModelOptions& options) {
    nn::RelationalModel model(options, shape);
  };
  expect_error(invalid, {"0 layers"}, [&] { make({.layers = 0}); });
  expect_error(invalid, {"a dropout of 1"}, [&] { make({.dropout = 1}); });
  expect_error(invalid, {"blocks or bases of sage"},
               [&] { make({.kind = nn::RelationalKind::sage, .bases = 2}); });
  expect_error(invalid, {"64 features of 5 heads"},
               [&] { make({.kind = nn::RelationalKind::gat, .heads = 5}); });
  expect_error(invalid, {"gcn", "rgcn, sage, gat"}, [&] { nn::parse_relational_kind("gcn"); });
}

}  // namespace
}  // namespace tessera
