// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/trained.hpp"
#include "support/training_data.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/predictor.hpp"

/// Models of few bits, computed in integers.
namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_vertices;
using test::small_model;
using test::trained_checkpoint;
using test::with_sparse_features;
using testing::expect_error;

/// The same with features of both signs, which have a lower bound that is not 0.
Dataset with_signs(const Dataset& dataset) {
  Dataset signs = dataset;
  const Matrix<float>& from = *std::get<DenseFeatures>(dataset.features);
  auto features = std::make_shared<Matrix<float>>(from.rows(), from.cols());
  for (std::int64_t i = 0; i < from.size(); ++i) features->data()[i] = from.data()[i] - 0.45f;
  signs.features = DenseFeatures(std::move(features));
  return signs;
}

Prediction predicted(const Checkpoint& checkpoint, const Dataset& dataset,
                     std::vector<std::int64_t> bits, bool integers, Device device = {}) {
  PredictOptions options;
  options.bits = std::move(bits);
  options.integers = integers;
  options.embeddings = true;
  options.placement.memory = &default_memory(device);
  return predict(checkpoint, dataset, options);
}

/// Both differ by what fp32 rounds, and by a code where that lies in the middle between two, which
/// sums of few different numbers often do: with many bits most numbers differ by the first alone,
/// and with few by less than a step in the mean. (BitNetwork's own tests compare every step with
/// what it has to be.) Embeddings in integers are codes, a step off by themselves.
void expect_close(const Matrix<float>& integers, const Matrix<float>& rounded, int bits,
                  bool are_codes = false) {
  ASSERT_EQ(integers.rows(), rounded.rows());
  ASSERT_EQ(integers.cols(), rounded.cols());
  double largest = 0;
  for (const float value : rounded.span()) largest = std::max<double>(largest, std::abs(value));
  const double step = 2 * largest / ((1 << bits) - 1);
  std::int64_t off = 0;
  double sum = 0;
  for (std::int64_t i = 0; i < integers.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(integers.data()[i]) - static_cast<double>(rounded.data()[i]));
    sum += difference;
    off += difference > 1e-4 * largest ? 1 : 0;
  }
  EXPECT_LE(sum / static_cast<double>(integers.size()), step);
  if (bits >= 8 && !are_codes) {
    EXPECT_LE(off, integers.size() / 10);
  }
  EXPECT_GT(largest, 0);
}

struct Case {
  const char* name;
  nn::ModelKind kind;
  std::int64_t layers;
  std::int64_t hidden;  ///< less than 9: weights come before the neighbours in the first layer
  bool batch_norm;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

class IntegersOf : public ::testing::TestWithParam<Case> {
 protected:
  nn::ModelConfig config(bool graph_task = false) const {
    nn::ModelConfig config = small_model(GetParam().kind, graph_task);
    config.layers = GetParam().layers;
    config.hidden = GetParam().hidden;
    config.batch_norm = GetParam().batch_norm;
    return config;
  }
};

TEST_P(IntegersOf, SayWhatRoundedNumbersSay) {
  const Dataset plain = learnable_vertices();
  for (const Dataset& dataset : {plain, with_signs(plain), with_sparse_features(plain)}) {
    const Checkpoint checkpoint = trained_checkpoint(dataset, config());
    for (const int bits : {16, 8, 4, 2, 1}) {
      SCOPED_TRACE(bits);
      const Prediction integers = predicted(checkpoint, dataset, {bits}, true);
      const Prediction rounded = predicted(checkpoint, dataset, {bits}, false);
      expect_close(integers.logits, rounded.logits, bits);
      expect_close(integers.embeddings, rounded.embeddings, bits, true);
    }
  }
}

TEST_P(IntegersOf, MayHaveOtherBitsInEveryLayer) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, config());
  std::vector<std::int64_t> bits;
  for (std::int64_t layer = 0; layer < GetParam().layers; ++layer) {
    bits.push_back(layer % 2 == 0 ? 8 : 3);
  }
  const Prediction integers = predicted(checkpoint, dataset, bits, true);
  expect_close(integers.logits, predicted(checkpoint, dataset, bits, false).logits, 3);
}

TEST_P(IntegersOf, AreTheSameForAnyThreadsAndInEveryRun) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, config());
  set_num_threads(1);
  const Prediction one = predicted(checkpoint, dataset, {4}, true);
  set_num_threads(3);
  PredictOptions options;
  options.bits = {4};
  Predictor predictor(checkpoint, dataset.graph, options);
  Matrix<float> logits(120, 3);
  const Matrix<float>& features = *std::get<DenseFeatures>(dataset.features);
  for (int run = 0; run < 3; ++run) {
    predictor.run(features, logits);
    EXPECT_TRUE(std::equal(logits.span().begin(), logits.span().end(), one.logits.data()));
  }
  set_num_threads(0);
}

TEST_P(IntegersOf, ClassifyGraphs) {
  const Dataset dataset = learnable_graphs();
  const Checkpoint checkpoint = trained_checkpoint(dataset, config(true));
  const Prediction integers = predicted(checkpoint, dataset, {8}, true);
  const Prediction rounded = predicted(checkpoint, dataset, {8}, false);
  expect_close(integers.logits, rounded.logits, 8);
}

TEST_P(IntegersOf, NameTheirKernels) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, config());
  const Prediction integers = predicted(checkpoint, dataset, {8}, true);
  const std::int64_t of_layer = GetParam().kind == nn::ModelKind::gin ? 3 : 2;
  ASSERT_EQ(std::ssize(integers.computed.children), of_layer * GetParam().layers);
  std::int64_t sums = 0;
  for (const ops::Explanation& product : integers.computed.children) {
    const std::string text = ops::to_string(product);
    const bool is_sum = product.name.ends_with("sum");
    sums += is_sum ? 1 : 0;
    EXPECT_NE(text.find(is_sum ? "bit_aggregate/" : "bit_gemm/"), std::string::npos) << text;
  }
  EXPECT_EQ(sums, GetParam().layers);
  EXPECT_TRUE(predicted(checkpoint, dataset, {8}, false).computed.children.empty());
}

TEST_P(IntegersOf, OnDeviceAreThoseOfTheCpu) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Dataset plain = learnable_vertices();
  for (const Dataset& dataset : {plain, with_signs(plain), with_sparse_features(plain)}) {
    const Checkpoint checkpoint = trained_checkpoint(dataset, config());
    for (const int bits : {12, 8, 4, 2, 1}) {
      const Prediction here = predicted(checkpoint, dataset, {bits}, true);
      const Prediction there = predicted(checkpoint, dataset, {bits}, true, {DeviceKind::cuda, 0});
      for (std::int64_t i = 0; i < here.logits.size(); ++i) {
        ASSERT_EQ(here.logits.data()[i], there.logits.data()[i]) << bits << " bits, element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, IntegersOf,
                         ::testing::Values(Case{"gcn", nn::ModelKind::gcn, 2, 6, false},
                                           Case{"gcn_wide", nn::ModelKind::gcn, 3, 16, false},
                                           Case{"gcn_normed", nn::ModelKind::gcn, 3, 6, true},
                                           Case{"gin", nn::ModelKind::gin, 2, 6, true},
                                           Case{"gin_wide", nn::ModelKind::gin, 3, 16, true},
                                           Case{"gin_plain", nn::ModelKind::gin, 2, 16, false}),
                         name_of);

TEST(Integers, CountAVertexAsOftenAsItsEpsilonSays) {
  nn::ModelConfig config = small_model(nn::ModelKind::gin);
  config.train_eps = true;
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, config);
  const auto eps = std::find_if(checkpoint.weights.begin(), checkpoint.weights.end(),
                                [](const StoredTensor& t) { return t.path == "convs.0.eps"; });
  ASSERT_NE(eps, checkpoint.weights.end());
  expect_close(predicted(checkpoint, dataset, {8}, true).logits,
               predicted(checkpoint, dataset, {8}, false).logits, 8);
}

TEST(Integers, TakeFeaturesThatWerePropagatedBeforehand) {
  nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  config.precomputed = true;
  config.input_dropout = 0;
  for (const Dataset& dataset :
       {learnable_vertices(), with_sparse_features(learnable_vertices())}) {
    const Checkpoint checkpoint = trained_checkpoint(dataset, config);
    expect_close(predicted(checkpoint, dataset, {8}, true).logits,
                 predicted(checkpoint, dataset, {8}, false).logits, 8);
  }
}

TEST(Integers, TakeFeaturesThatWereStandardised) {
  const test::TemporaryFolder folder;
  TrainOptions options = test::short_training(5);
  options.checkpoint.path = folder / "model";
  options.normalise = Normalise::standard;
  for (const Dataset& dataset :
       {learnable_vertices(), with_sparse_features(learnable_vertices())}) {
    for (const std::int64_t hidden : {6, 16}) {
      nn::ModelConfig config = small_model(nn::ModelKind::gcn);
      config.hidden = hidden;
      fit(dataset, config, options);
      const Checkpoint checkpoint = load_checkpoint(options.checkpoint.path);
      expect_close(predicted(checkpoint, dataset, {8}, true).logits,
                   predicted(checkpoint, dataset, {8}, false).logits, 8);
    }
  }
}

TEST(Integers, SayWhatTheyCannotDo) {
  const auto refuse = [](const nn::ModelConfig& config, const Dataset& dataset, const char* what) {
    const Checkpoint checkpoint = trained_checkpoint(dataset, config);
    expect_error(ErrorCode::unsupported, {what, "--rounded"},
                 [&] { predicted(checkpoint, dataset, {8}, true); });
    EXPECT_NO_THROW(predicted(checkpoint, dataset, {8}, false));
  };
  nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  config.activation = ops::Activation::elu;
  refuse(config, learnable_vertices(), "elu in integers");
  config = small_model(nn::ModelKind::gcn);
  config.layers = 3;
  config.residual = true;
  refuse(config, learnable_vertices(), "no form in integers");
  Dataset weighted = learnable_vertices();
  std::vector<float> weights(static_cast<std::size_t>(weighted.graph.num_edges()), 1.0f);
  weights[3] = 2;
  weighted.graph = weighted.graph.with_values(SharedArray<float>(weights));
  refuse(small_model(nn::ModelKind::gcn), weighted, "weights of their own");
}

TEST(Integers, NeedRunsOrADataSetBeforeTheyCanBeExplained) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(nn::ModelKind::gcn));
  PredictOptions options;
  options.bits = {8};
  Predictor predictor(checkpoint, dataset.graph, options);
  EXPECT_NE(predictor.explain().summary.find("first run"), std::string::npos);
  Matrix<float> logits(120, 3);
  expect_error(ErrorCode::invalid_argument, {"has no features"}, [&] { predictor.run(logits); });
  predictor.run(*std::get<DenseFeatures>(dataset.features), logits);
  EXPECT_EQ(predictor.explain().children.size(), 4u);
  expect_error(ErrorCode::invalid_argument, {"has no features"}, [&] { predictor.run(logits); });
}

}  // namespace
}  // namespace tessera::train
