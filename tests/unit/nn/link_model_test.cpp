// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/link_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
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
  explicit Scene(LinkDecoderKind kind)
      : graph(test::weighted_graph(vertices, vertices, 40, 3)),
        pairs(links::as_matrix(drawn_pairs(30, 5))),
        ends(vertices, pairs.cols()),
        x(test::normal_tensor(vertices, features, 7)) {
    ModelConfig config;
    config.hidden = 6;
    model = std::make_unique<LinkModel>(
        std::make_unique<Model>(config, features, width, 1, test::double_placement()),
        LinkModelOptions{kind});
    model->reset_parameters(11);
    ends.list(pairs);
    context.graph = &graph;
    context.pairs = pairs;
    context.pair_ends = &ends;
    context.training = true;
  }

  Topology graph;
  Matrix<VertexId> pairs;
  ops::PairEnds ends;
  Tensor x;
  std::unique_ptr<LinkModel> model;
  Context context;
};

class EveryDecoder : public ::testing::TestWithParam<LinkDecoderKind> {};

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
  std::vector<double> scores;
  for (std::int64_t k = 0; k < result.rows(); ++k) scores.push_back(result.as<double>()(k, 0));
  ASSERT_EQ(std::ssize(scores), scene.pairs.cols());
  const std::span<const double> positives(scores.data(), edges);
  const auto negatives = std::span<const double>(scores).subspan(edges, 2 * edges);
  double loss = 0;
  scene.context.loss = &loss;
  const ops::PairLossOptions yes_or_no{.kind = ops::PairLossKind::bce, .positives = edges};
  scene.context.pair_loss = &yes_or_no;
  scene.model->learn(scene.x, scene.context);
  EXPECT_NEAR(loss,
              links::bce_loss<double>(positives, std::span<const double>(scores).subspan(edges)),
              1e-12);
  // Two negatives of each, without the last pair.
  scene.context.pairs.cols = 3 * edges;
  ops::PairEnds ends(vertices, 3 * edges);
  ends.list(scene.context.pairs);
  scene.context.pair_ends = &ends;
  const ops::PairLossOptions ranks{
      .kind = ops::PairLossKind::margin, .positives = edges, .margin = 0.5};
  scene.context.pair_loss = &ranks;
  scene.model->learn(scene.x, scene.context);
  EXPECT_NEAR(loss, links::margin_loss<double>(positives, negatives, 0.5), 1e-12);
}

TEST_P(EveryDecoder, describes_itself_and_names_its_tensors) {
  Scene scene(GetParam());
  EXPECT_NE(scene.model->describe().find(to_string(GetParam())), std::string::npos);
  for (const NamedTensor& tensor : scene.model->state()) {
    EXPECT_TRUE(tensor.path.starts_with("encoder.") || tensor.path.starts_with("decoder."))
        << tensor.path;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryDecoder, ::testing::ValuesIn(all_decoders),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

/// The decoder alone, on embeddings.
Tensor decoded(LinkDecoder& decoder, const Tensor& embeddings, const Pairs& pairs) {
  const Matrix<VertexId> asked = links::as_matrix(pairs);
  Context context;
  context.pairs = asked;
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
    const Tensor result = decoded(decoder, embeddings, pairs);
    std::vector<double> expected(static_cast<std::size_t>(pairs.size()));
    links::DistMultDecoder reference(pairs, {}, vertices, vertices, 1,
                                     {width, Precision::fp64, false});
    reference.score<double>(rows, relation, rows, expected);
    for (std::int64_t k = 0; k < pairs.size(); ++k) {
      EXPECT_NEAR(result.as<double>()(k, 0), expected[static_cast<std::size_t>(k)], 1e-12)
          << to_string(kind) << " of pair " << k;
    }
  }
}

TEST(LinkDecoder, of_a_perceptron_tells_the_directions_apart) {
  const Tensor embeddings = test::normal_tensor(vertices, width, 2);
  LinkDecoder decoder(LinkDecoderKind::mlp, width, test::double_placement());
  decoder.reset_parameters(4);
  const Tensor result = decoded(decoder, embeddings, {{1, 2}, {2, 1}});
  EXPECT_GT(std::abs(result.as<double>()(0, 0) - result.as<double>()(1, 0)), 1e-6);
}

TEST(LinkModel, needs_the_ends_of_pairs_for_gradients_alone) {
  Scene scene(LinkDecoderKind::dot);
  scene.context.pair_ends = nullptr;
  EXPECT_NO_THROW(scene.model->forward(scene.x, scene.context));
  Tensor gradient = test::normal_tensor(scene.pairs.cols(), 1, 3);
  testing::expect_error(ErrorCode::invalid_argument, {"ends of the pairs", "Context::pair_ends"},
                        [&] { scene.model->backward(gradient, scene.context); });
}

}  // namespace
}  // namespace tessera::nn
