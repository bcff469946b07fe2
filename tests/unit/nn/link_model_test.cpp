// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/link_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "support/gradient_check.hpp"
#include "tessera/links/decoder.hpp"
#include "tessera/links/loss.hpp"
#include "tessera/nn/model.hpp"

namespace tessera::nn {
namespace {

using links::Pairs;

constexpr VertexId vertices = 13;
constexpr std::int64_t features = 5, width = 4;

constexpr LinkDecoderKind all_decoders[] = {LinkDecoderKind::dot, LinkDecoderKind::distmult,
                                            LinkDecoderKind::mlp};

/// In no order, some of them twice, some between a vertex and itself.
Pairs drawn_pairs(std::uint64_t count, std::uint64_t seed) {
  const Random random(seed);
  Pairs pairs;
  for (std::uint64_t k = 0; k < count; ++k) {
    pairs.sources.push_back(static_cast<VertexId>(random.below(2 * k, vertices)));
    pairs.targets.push_back(static_cast<VertexId>(random.below(2 * k + 1, vertices)));
  }
  pairs.sources.push_back(pairs.sources.front());
  pairs.targets.push_back(pairs.targets.front());
  return pairs;
}

/// A model of two layers beside a graph, pairs and features, in double.
struct Scene {
  explicit Scene(LinkDecoderKind kind, bool compares = false)
      : graph(test::weighted_graph(vertices, vertices, 40, 3)),
        pairs(drawn_pairs(30, 5)),
        asked(kind, pairs, vertices),
        x(test::normal_tensor(vertices, features, 7)) {
    ModelConfig config;
    config.hidden = 6;
    model = std::make_unique<LinkModel>(
        std::make_unique<Model>(config, features, width, 1, test::double_placement()),
        LinkModelOptions{kind, compares});
    model->reset_parameters(11);
    graphs = {&graph, &graph};
    asked.append_to(graphs);
    context.graphs = graphs;
    context.training = true;
  }

  double score(std::int64_t k, const Tensor& result) const {
    return result.as<double>()(asked.row_of(k), 0);
  }

  Topology graph;
  Pairs pairs;
  PairGraphs asked;
  Tensor x;
  std::unique_ptr<LinkModel> model;
  std::vector<Topology*> graphs;
  Context context;
};

class EveryDecoder : public testing::TestWithParam<LinkDecoderKind> {};

TEST_P(EveryDecoder, has_the_gradients_of_finite_differences) {
  Scene scene(GetParam());
  test::GradientCheck check(*scene.model, scene.context, [&]() -> const Tensor& {
    return scene.model->forward(scene.x, scene.context);
  });
  check.backward();
  check.expect_parameter_gradients();
}

TEST_P(EveryDecoder, learns_by_the_loss_of_its_scores) {
  Scene scene(GetParam());
  const Tensor& result = scene.model->forward(scene.x, scene.context);
  constexpr std::int64_t edges = 10;
  const std::int64_t count = scene.asked.size();
  std::vector<double> positives, negatives;
  Matrix<float> wanted(count, 1, 0.0f);
  std::vector<std::int64_t> rows;
  for (std::int64_t k = 0; k < count; ++k) {
    (k < edges ? positives : negatives).push_back(scene.score(k, result));
    if (k < edges) wanted(scene.asked.row_of(k), 0) = 1;
    rows.push_back(k);
  }
  const auto targets = ops::LossTargets::binary(wanted, rows);
  double loss = 0;
  scene.context.targets = &targets;
  scene.context.loss = &loss;
  scene.model->learn(scene.x, scene.context);
  EXPECT_NEAR(loss, links::bce_loss<double>(positives, negatives), 1e-12);
}

TEST_P(EveryDecoder, describes_itself_and_names_its_tensors) {
  Scene scene(GetParam());
  EXPECT_NE(scene.model->describe().find(to_string(GetParam())), std::string::npos);
  for (const NamedTensor& tensor : scene.model->state()) {
    EXPECT_TRUE(tensor.path.starts_with("encoder.") || tensor.path.starts_with("decoder."))
        << tensor.path;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryDecoder, testing::ValuesIn(all_decoders),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

/// The decoder alone, on embeddings.
Tensor decoded(LinkDecoder& decoder, const Tensor& embeddings, PairGraphs& asked) {
  std::vector<Topology*> graphs;
  asked.append_to(graphs);
  Context context;
  context.graphs = graphs;
  Tensor result(test::double_placement());
  result.copy_from(decoder.forward(embeddings, context));
  return result;
}

TEST(LinkDecoder, scores_as_the_decoders_of_links_do) {
  const Pairs pairs = drawn_pairs(40, 17);
  const Tensor embeddings = test::normal_tensor(vertices, width, 2);
  const MatrixView<const double> rows = embeddings.as<double>();
  for (const LinkDecoderKind kind : {LinkDecoderKind::dot, LinkDecoderKind::distmult}) {
    LinkDecoder decoder(kind, width, test::double_placement());
    Matrix<double> relation(1, width, 1.0);
    for (const NamedParameter& named : decoder.parameters()) {
      for (std::int64_t k = 0; k < width; ++k) relation(0, k) = 0.5 * static_cast<double>(k) - 1;
      named.parameter->value.copy_from(relation);
    }
    PairGraphs asked(kind, pairs, vertices);
    const Tensor result = decoded(decoder, embeddings, asked);
    std::vector<double> expected(static_cast<std::size_t>(pairs.size()));
    links::DistMultDecoder reference(pairs, {}, vertices, vertices, 1,
                                     {width, Precision::fp64, false});
    reference.score<double>(rows, relation, rows, expected);
    for (std::int64_t k = 0; k < pairs.size(); ++k) {
      EXPECT_NEAR(result.as<double>()(asked.row_of(k), 0), expected[static_cast<std::size_t>(k)],
                  1e-12)
          << to_string(kind) << " of pair " << k;
    }
  }
}

TEST(LinkDecoder, of_a_perceptron_tells_the_directions_apart) {
  const Tensor embeddings = test::normal_tensor(vertices, width, 2);
  LinkDecoder decoder(LinkDecoderKind::mlp, width, test::double_placement());
  decoder.reset_parameters(4);
  PairGraphs asked(LinkDecoderKind::mlp, {{1, 2}, {2, 1}}, vertices);
  const Tensor result = decoded(decoder, embeddings, asked);
  EXPECT_GT(std::abs(result.as<double>()(0, 0) - result.as<double>()(1, 0)), 1e-6);
}

TEST(LinkModel, compares_scores_in_training_alone) {
  Scene scene(LinkDecoderKind::dot, true);
  const std::int64_t first = scene.asked.row_of(0), second = scene.asked.row_of(1);
  const std::vector<VertexId> rows{0, 0},
      cols{static_cast<VertexId>(first), static_cast<VertexId>(second)};
  const std::vector<float> signs{1, -1};
  Topology comparison(from_coo(1, static_cast<VertexId>(scene.asked.size()), rows, cols, signs));
  scene.graphs.push_back(nullptr);
  scene.context.graphs = scene.graphs;
  scene.context.training = false;
  const Tensor& scores = scene.model->forward(scene.x, scene.context);
  ASSERT_EQ(scores.rows(), scene.asked.size());
  const double expected = scene.score(0, scores) - scene.score(1, scores);
  scene.graphs.back() = &comparison;
  scene.context.training = true;
  const Tensor& compared = scene.model->forward(scene.x, scene.context);
  ASSERT_EQ(compared.rows(), 1);
  EXPECT_NEAR(compared.as<double>()(0, 0), expected, 1e-12);
}

}  // namespace
}  // namespace tessera::nn
