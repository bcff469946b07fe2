// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/gradient_check.hpp"
#include "tessera/graph/relational.hpp"
#include "tessera/nn/rgcn.hpp"
#include "tessera/nn/triple_model.hpp"

namespace tessera {
namespace {

using test::double_placement;
using test::GradientCheck;
using test::normal_tensor;

/// Some edges twice, a vertex without any, and relations without any.
Triples few_triples() {
  return {{0, 1, 1, 2, 4, 4, 3, 3}, {0, 0, 0, 2, 2, 2, 4, 0}, {2, 2, 2, 2, 0, 0, 4, 4}};
}
constexpr VertexId num_vertices = 6;
constexpr std::int32_t num_relations = 5;

struct Scene {
  explicit Scene(int layers = 1) {
    for (int i = 0; i < layers; ++i) {
      for (step::Topology& graph : graphs) list.push_back(&graph);
    }
    context.graphs = list;
    context.training = true;
  }

  RelationSegments segments = segments_of(few_triples(), num_vertices, num_relations);
  std::array<step::Topology, 3> graphs{step::Topology(segments.edges),
                                       step::Topology(segments.relations),
                                       step::Topology(segments.targets)};
  std::vector<step::Topology*> list;
  step::Context context;
};

struct Form {
  std::int64_t in, out, blocks, bases;
  bool root;
};
constexpr Form forms[] = {{4, 6, 1, 0, true},
                          {4, 6, 2, 0, true},
                          {3, 5, 1, 2, true},
                          {4, 4, 4, 0, false},
                          {1, 1, 1, 1, false}};

nn::RgcnOptions options_of(const Form& form) {
  return {.in = form.in,
          .out = form.out,
          .relations = num_relations,
          .blocks = form.blocks,
          .bases = form.bases,
          .root = form.root};
}

/// The weight of a relation as a whole matrix, in x out.
Matrix<double> weight_of(nn::Rgcn& layer, const Form& form, std::int32_t relation) {
  std::map<std::string, const nn::Parameter*> named;
  for (const nn::NamedParameter& one : layer.parameters()) named[one.path] = one.parameter;
  const auto weight = named.at("weight")->value.as<double>();
  Matrix<double> whole(form.in, form.out, 0.0);
  const std::int64_t height = form.in / form.blocks, width = form.out / form.blocks;
  for (std::int64_t i = 0; i < form.in; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t place = i * width + j;
      double value = 0;
      if (form.bases == 0) value = weight(relation, place);
      for (std::int64_t b = 0; b < form.bases; ++b) {
        value += named.at("comp")->value.as<double>()(relation, b) * weight(place, b);
      }
      whole(i, i / height * width + j) = value;
    }
  }
  return whole;
}

TEST(Rgcn, AgreesWithItsFormula) {
  for (const Form& form : forms) {
    SCOPED_TRACE(::testing::Message() << form.blocks << " blocks, " << form.bases << " bases");
    Scene scene;
    nn::Rgcn layer(options_of(form), double_placement());
    layer.reset_parameters(3);
    const step::Tensor x = normal_tensor(num_vertices, form.in, 5);
    const step::Tensor& y = layer.forward(x, scene.context);
    Matrix<double> expected(num_vertices, form.out, 0.0);
    for (const nn::NamedParameter& one : layer.parameters()) {
      const auto value = one.parameter->value.as<double>();
      for (VertexId v = 0; v < num_vertices; ++v) {
        for (std::int64_t j = 0; j < form.out; ++j) {
          if (one.path == "bias") expected(v, j) += value(0, j);
          if (one.path != "root.weight") continue;
          for (std::int64_t i = 0; i < form.in; ++i) {
            expected(v, j) += x.as<double>()(v, i) * value(j, i);
          }
        }
      }
    }
    const Triples triples = few_triples();
    for (std::size_t k = 0; k < triples.heads.size(); ++k) {
      int count = 0;
      for (std::size_t other = 0; other < triples.heads.size(); ++other) {
        count += triples.relations[other] == triples.relations[k] &&
                         triples.tails[other] == triples.tails[k]
                     ? 1
                     : 0;
      }
      const Matrix<double> weight = weight_of(layer, form, triples.relations[k]);
      for (std::int64_t i = 0; i < form.in; ++i) {
        for (std::int64_t j = 0; j < form.out; ++j) {
          expected(triples.tails[k], j) +=
              x.as<double>()(triples.heads[k], i) * weight(i, j) / count;
        }
      }
    }
    for (std::int64_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(y.as<double>().data[k], expected.data()[k], 1e-12) << k;
    }
  }
}

TEST(Rgcn, GradientsMatchDifferences) {
  for (const Form& form : forms) {
    SCOPED_TRACE(::testing::Message() << form.blocks << " blocks, " << form.bases << " bases");
    Scene scene;
    nn::RgcnOptions options = options_of(form);
    options.output.activation = ops::Activation::elu;
    nn::Rgcn layer(options, double_placement());
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

TEST(Rgcn, GraphsWithoutEdgesLeaveTheVertexItself) {
  for (const std::int32_t relations : {0, 1, 500}) {
    const RelationSegments none = segments_of(Triples(), 4, relations);
    step::Topology graphs[] = {step::Topology(none.edges), step::Topology(none.relations),
                               step::Topology(none.targets)};
    step::Topology* const list[] = {&graphs[0], &graphs[1], &graphs[2]};
    step::Context context;
    context.graphs = list;
    nn::Rgcn layer({.in = 3, .out = 2, .relations = relations}, double_placement());
    layer.reset_parameters(1);
    const step::Tensor x = normal_tensor(4, 3, 5);
    const step::Tensor& y = layer.forward(x, context);
    ASSERT_EQ(y.rows(), 4);
    double sum = 0;
    for (const nn::NamedParameter& one : layer.parameters()) {
      if (one.path != "root.weight") continue;
      for (std::int64_t i = 0; i < 3; ++i) {
        sum += one.parameter->value.as<double>()(1, i) * x.as<double>()(2, i);
      }
    }
    EXPECT_NEAR(y.as<double>()(2, 1), sum, 1e-14);
  }
}

TEST(Rgcn, WhatCannotBeIsAnError) {
  using testing::expect_error;
  const auto make = [](const nn::RgcnOptions& options) { nn::Rgcn layer(options); };
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"do not divide into 3 blocks"},
               [&] { make({.in = 6, .out = 4, .relations = 1, .blocks = 3}); });
  expect_error(invalid, {"either bases or blocks"},
               [&] { make({.in = 4, .out = 4, .relations = 1, .blocks = 2, .bases = 2}); });
  expect_error(invalid, {"0 x 4 features"}, [&] { make({.in = 0, .out = 4}); });
}

TEST(TripleModel, GradientsMatchDifferences) {
  for (const std::int64_t layers : {0, 2}) {
    SCOPED_TRACE(::testing::Message() << layers << " layers");
    // Relations with their inverses.
    Triples both = few_triples();
    const std::size_t count = both.heads.size();
    for (std::size_t k = 0; k < count; ++k) {
      both.heads.push_back(both.tails[k]);
      both.relations.push_back(both.relations[k] + num_relations);
      both.tails.push_back(both.heads[k]);
    }
    const RelationSegments segments = segments_of(both, num_vertices, 2 * num_relations);
    step::Topology graphs[] = {step::Topology(segments.edges), step::Topology(segments.relations),
                               step::Topology(segments.targets)};
    step::Topology asked(Graph(4, num_relations, std::vector<EdgeOffset>{0, 1, 2, 3, 4},
                               std::vector<VertexId>{4, 0, 0, 1}));
    std::vector<step::Topology*> list;
    for (std::int64_t i = 0; i < layers; ++i) {
      for (step::Topology& graph : graphs) list.push_back(&graph);
    }
    list.push_back(&asked);
    Matrix<VertexId> pairs(2, 4);
    const VertexId ends[] = {0, 5, 2, 2, 3, 1, 2, 0};
    std::copy(std::begin(ends), std::end(ends), pairs.data());
    ops::PairEnds pair_ends(num_vertices, 4);
    pair_ends.list(pairs);
    step::Context context;
    context.graphs = list;
    context.pairs = pairs;
    context.pair_ends = &pair_ends;
    context.training = true;
    nn::TripleModel model({.entities = num_vertices,
                           .relations = num_relations,
                           .width = 6,
                           .layers = layers,
                           .blocks = 3,
                           .dropout = 0.3,
                           .penalty = 0},
                          double_placement());
    model.reset_parameters(8);
    const step::Tensor input = normal_tensor(num_vertices, 1, 1);
    GradientCheck check(model, context,
                        [&]() -> const step::Tensor& { return model.forward(input, context); });
    check.backward();
    check.expect_parameter_gradients();
  }
}

}  // namespace
}  // namespace tessera
