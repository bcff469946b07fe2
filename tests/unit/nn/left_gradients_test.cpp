// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/matrices.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/nn/dense.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/nn/sequential.hpp"
#include "tessera/ops/loss.hpp"

/// Gradients that one layer leaves to whoever writes what it would read: the same as its own.
namespace tessera::nn {
namespace {

constexpr std::int64_t vertices = 60;

template <class Layer, class Options>
std::unique_ptr<Layer> made(std::int64_t in, std::int64_t out, ops::Activation activation) {
  Options options;
  options.in = in;
  options.out = out;
  options.output.activation = activation;
  return std::make_unique<Layer>(options);
}

std::vector<Matrix<float>> gradients_of(nn::Layer& layer) {
  std::vector<Matrix<float>> gradients;
  for (const auto& [path, parameter] : layer.parameters()) {
    const Tensor& from = parameter->gradient;
    Matrix<float> copy(from.rows(), from.cols());
    for (std::int64_t i = 0; i < copy.size(); ++i) {
      copy.data()[i] = from.as<float>()(i / copy.cols(), i % copy.cols());
    }
    gradients.push_back(std::move(copy));
  }
  return gradients;
}

template <class Kind, class Options>
void expect_same_gradients() {
  Topology topology(testing::random_graph(vertices, vertices, 300, 5, false));
  Context context;
  context.graph = &topology;
  context.training = true;
  Tensor x, slopes;
  x.upload(test::normal_matrix<float>(vertices, 9, 1));
  slopes.upload(test::normal_matrix<float>(vertices, 4, 2));
  const auto run = [&](bool connected) {
    Sequential layers;
    Layer& first = layers.add("first", made<Kind, Options>(9, 6, ops::Activation::relu));
    Layer& second = layers.add("second", made<Kind, Options>(6, 4, ops::Activation::none));
    layers.reset_parameters(3);
    Tensor grad;
    grad.copy_from(slopes);
    if (connected) {
      layers.forward(x, context);
      layers.backward(grad, context);
    } else {
      second.forward(first.forward(x, context), context);
      first.backward(*second.backward(grad, context), context);
    }
    return gradients_of(layers);
  };
  const auto expected = run(false), found = run(true);
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t j = 0; j < expected[i].size(); ++j) {
      EXPECT_NEAR(found[i].data()[j], expected[i].data()[j], 1e-5) << i;
    }
  }
}

TEST(LeftGradients, OfReluAreFoundByTheLayerThatFollows) {
  expect_same_gradients<Gcn, GcnOptions>();
  expect_same_gradients<Linear, LinearOptions>();
}

/// A task for 60 vertices of 9 features, of which every third is not chosen.
struct Task {
  Task() : topology(testing::random_graph(vertices, vertices, 300, 5, false)) {
    x.upload(test::normal_matrix<float>(vertices, 9, 1));
    std::vector<std::int64_t> labels(vertices), rows;
    for (std::int64_t i = 0; i < vertices; ++i) {
      labels[static_cast<std::size_t>(i)] = i % 4;
      if (i % 3 != 0) rows.push_back(i);
    }
    targets = ops::LossTargets::classes(labels, rows, 4);
    context.graph = &topology;
    context.training = true;
    context.targets = &*targets;
    context.loss = &loss;
  }

  /// Pass by pass, with the loss between them.
  std::vector<Matrix<float>> gradients_by_passes(nn::Layer& layer) {
    const Tensor& logits = layer.forward(x, context);
    Tensor grad(logits.rows(), logits.cols());
    ops::loss(logits, *targets, grad, &loss);
    layer.backward(grad, context);
    return gradients_of(layer);
  }

  std::vector<Matrix<float>> gradients_at_once(nn::Layer& layer) {
    layer.learn(x, context);
    return gradients_of(layer);
  }

  Topology topology;
  Tensor x;
  std::optional<ops::LossTargets> targets;
  double loss = 0;
  Context context;
};

void expect_near(const std::vector<Matrix<float>>& found,
                 const std::vector<Matrix<float>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t j = 0; j < expected[i].size(); ++j) {
      EXPECT_NEAR(found[i].data()[j], expected[i].data()[j], 1e-6) << i;
    }
  }
}

bool finds_bias_in_loss(const nn::Layer& layer) {
  return std::ranges::any_of(layer.explain().fired, [](const step::Fired& one) {
    return one.name == "bias-gradient-in-loss";
  });
}

TEST(LeftGradients, OfABiasAreFoundByTheLossOfEveryModel) {
  for (const CatalogueEntry& entry : model_kinds()) {
    SCOPED_TRACE(entry.name);
    const ModelKind kind = parse_model_kind(entry.name);
    ModelConfig config = paper_defaults(kind);
    config.dropout = config.input_dropout = config.attention_dropout = 0;
    Task task;
    Model model(config, 9, 4, 7);
    const auto expected = task.gradients_by_passes(model);
    const double loss = std::exchange(task.loss, -1);
    expect_near(task.gradients_at_once(model), expected);
    EXPECT_NEAR(task.loss, loss, 1e-12);
    EXPECT_TRUE(finds_bias_in_loss(model));
    model.leave_out_rewrites({"bias-gradient-in-loss"});
    expect_near(task.gradients_at_once(model), expected);
    EXPECT_FALSE(finds_bias_in_loss(model));
    // Passes in turn with those of another kind.
    expect_near(task.gradients_by_passes(model), expected);
  }
}

TEST(LeftGradients, StayWhereABiasIsAddedBeforeAnActivation) {
  Task task;
  const auto layer = made<Gcn, GcnOptions>(9, 4, ops::Activation::relu);
  layer->reset_parameters(3);
  const auto expected = task.gradients_by_passes(*layer);
  expect_near(task.gradients_at_once(*layer), expected);
  EXPECT_FALSE(finds_bias_in_loss(*layer));
}

TEST(LeftGradients, NeedTargets) {
  Task task;
  task.context.targets = nullptr;
  const auto layer = made<Gcn, GcnOptions>(9, 4, ops::Activation::none);
  EXPECT_THROW(layer->learn(task.x, task.context), Error);
}

}  // namespace
}  // namespace tessera::nn
