// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/matrices.hpp"
#include "support/random_coo.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/linear.hpp"
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

TEST(LeftGradients, OfABiasAreFoundByTheLoss) {
  Topology topology(testing::random_graph(vertices, vertices, 300, 5, false));
  Context context;
  context.graph = &topology;
  context.training = true;
  Tensor x;
  x.upload(test::normal_matrix<float>(vertices, 9, 1));
  std::vector<std::int64_t> labels(vertices), rows;
  for (std::int64_t i = 0; i < vertices; ++i) {
    labels[static_cast<std::size_t>(i)] = i % 4;
    if (i % 3 != 0) rows.push_back(i);
  }
  const auto targets = ops::LossTargets::classes(labels, rows, 4);
  const auto run = [&](bool leaves) {
    Sequential layers;
    layers.add("only", made<Gcn, GcnOptions>(9, 4, ops::Activation::none));
    layers.reset_parameters(3);
    const Tensor& logits = layers.forward(x, context);
    Tensor grad(logits.rows(), logits.cols());
    Parameter* const bias = leaves ? layers.leave_sum() : nullptr;
    EXPECT_EQ(bias != nullptr, leaves);
    double value = 0;
    ops::loss(logits, targets, grad, &value, {}, nullptr,
              bias == nullptr ? ops::Operand() : ops::Operand(bias->gradient));
    layers.backward(grad, context);
    auto gradients = gradients_of(layers);
    // The next pass finds all of them itself.
    for (const auto& [path, parameter] : layers.parameters()) parameter->gradient.fill(-77);
    layers.backward(grad, context);
    const auto again = gradients_of(layers);
    EXPECT_EQ(again.size(), gradients.size());
    for (std::size_t i = 0; i < again.size(); ++i) {
      for (std::int64_t j = 0; j < again[i].size(); ++j) {
        EXPECT_NEAR(again[i].data()[j], gradients[i].data()[j], 1e-6) << i;
      }
    }
    return gradients;
  };
  const auto expected = run(false), found = run(true);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t j = 0; j < expected[i].size(); ++j) {
      EXPECT_NEAR(found[i].data()[j], expected[i].data()[j], 1e-6) << i;
    }
  }
}

TEST(LeftGradients, OfABiasAreFoundByTheLossOfEveryModel) {
  Topology topology(testing::random_graph(vertices, vertices, 300, 5, false));
  Context context;
  context.graph = &topology;
  context.training = true;
  Tensor x;
  x.upload(test::normal_matrix<float>(vertices, 9, 1));
  std::vector<std::int64_t> labels(vertices), rows(vertices);
  for (std::int64_t i = 0; i < vertices; ++i) {
    labels[static_cast<std::size_t>(i)] = i % 4;
    rows[static_cast<std::size_t>(i)] = i;
  }
  const auto targets = ops::LossTargets::classes(labels, rows, 4);
  for (const CatalogueEntry& entry : model_kinds()) {
    SCOPED_TRACE(entry.name);
    ModelConfig config = paper_defaults(parse_model_kind(entry.name));
    config.dropout = config.input_dropout = config.attention_dropout = 0;
    const auto run = [&](bool leaves) {
      Model model(config, 9, 4, 7);
      const Tensor& logits = model.forward(x, context);
      Tensor grad(logits.rows(), logits.cols());
      Parameter* const bias = leaves ? model.leave_sum() : nullptr;
      double value = 0;
      ops::loss(logits, targets, grad, &value, {}, nullptr,
                bias == nullptr ? ops::Operand() : ops::Operand(bias->gradient));
      model.backward(grad, context);
      return std::pair(gradients_of(model), bias != nullptr);
    };
    const auto [expected, never] = run(false);
    const auto [found, left] = run(true);
    const ModelKind kind = parse_model_kind(entry.name);
    if (kind == ModelKind::gcn || kind == ModelKind::gin || kind == ModelKind::gat) {
      EXPECT_TRUE(left);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::int64_t j = 0; j < expected[i].size(); ++j) {
        EXPECT_NEAR(found[i].data()[j], expected[i].data()[j], 1e-6) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::nn
