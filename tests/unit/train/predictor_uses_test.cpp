// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/trained.hpp"
#include "support/training_data.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/train/predictor.hpp"

/// Predictions for some vertices alone, by several threads, and on a stream.
namespace tessera::train {
namespace {

using test::learnable_vertices;
using test::small_model;
using test::trained_checkpoint;
using testing::expect_error;

const Matrix<float>& dense(const Dataset& dataset) {
  return *std::get<DenseFeatures>(dataset.features);
}

/// A ring in which each vertex reads the one before and the third before.
Graph ring(VertexId vertices) {
  std::vector<VertexId> rows, cols;
  for (VertexId v = 0; v < vertices; ++v) {
    for (const VertexId back : {1, 3}) {
      rows.push_back(v);
      cols.push_back((v + vertices - back) % vertices);
    }
  }
  return from_coo(vertices, vertices, rows, cols);
}

nn::ModelConfig model_of(nn::ModelKind kind, bool precomputed = false) {
  nn::ModelConfig config = small_model(kind);
  config.precomputed = precomputed;
  return config;
}

Matrix<float> all_logits(Predictor& predictor, const Matrix<float>& features) {
  Matrix<float> logits(predictor.num_items(), predictor.num_outputs());
  predictor.run(features, logits);
  return logits;
}

class PredictorNear : public ::testing::TestWithParam<nn::ModelKind> {};

TEST_P(PredictorNear, ReadsTheNeighbourhoodAlone) {
  Dataset dataset = learnable_vertices();
  dataset.graph = ring(120);
  for (const bool precomputed : {false, true}) {
    const bool can = GetParam() == nn::ModelKind::gcn || GetParam() == nn::ModelKind::sgc;
    if (precomputed && !can) continue;
    nn::ModelConfig config = model_of(GetParam(), precomputed);
    config.input_dropout = 0;
    const Checkpoint checkpoint = trained_checkpoint(dataset, config);
    Predictor predictor(checkpoint, dataset.graph);
    const Matrix<float> expected = all_logits(predictor, dense(dataset));
    // What is far away is not even looked at.
    Matrix<float> features(120, 9);
    std::copy_n(dense(dataset).data(), features.size(), features.data());
    for (std::int64_t v = 60; v < 90; ++v) {
      features(v, 0) = std::numeric_limits<float>::quiet_NaN();
    }
    const std::vector<VertexId> vertices = {50, 7, 50, 41};
    Matrix<float> logits(4, predictor.num_outputs());
    predictor.run(features, vertices, logits);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < logits.cols(); ++j) {
        const float wanted = expected(vertices[static_cast<std::size_t>(i)], j);
        EXPECT_NEAR(logits(i, j), wanted, 1e-5f * (1 + std::abs(wanted))) << i << ' ' << j;
      }
    }
    // The next run on everything is as before.
    const Matrix<float> again = all_logits(predictor, dense(dataset));
    for (std::int64_t i = 0; i < again.size(); ++i) {
      ASSERT_EQ(again.data()[i], expected.data()[i]) << i;
    }
    Matrix<float> none(0, logits.cols());
    predictor.run(features, std::span<const VertexId>(), none);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PredictorNear,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::sage,
                                           nn::ModelKind::gin, nn::ModelKind::gat,
                                           nn::ModelKind::gatv2, nn::ModelKind::agnn,
                                           nn::ModelKind::sgc, nn::ModelKind::cheb),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST(PredictorUses, RefuseVerticesThatAreNotThere) {
  const Dataset dataset = learnable_vertices();
  Predictor predictor(trained_checkpoint(dataset, model_of(nn::ModelKind::gcn)), dataset.graph);
  Matrix<float> logits(1, 3);
  const std::vector<VertexId> vertices = {120};
  expect_error(ErrorCode::invalid_argument, {"vertex 120 is outside [0, 120)"},
               [&] { predictor.run(dense(dataset), vertices, logits); });
  Matrix<float> wrong(2, 3);
  expect_error(ErrorCode::invalid_argument, {"logits are 2 x 3, expected 1 x 3"},
               [&] { predictor.run(dense(dataset), vertices, wrong); });
}

TEST(PredictorUses, ShareWeightsAmongThreads) {
  const Dataset dataset = learnable_vertices();
  std::vector<Matrix<float>> results(4);
  std::vector<Predictor> predictors;
  Matrix<float> expected(120, 3);
  {
    Predictor first(trained_checkpoint(dataset, model_of(nn::ModelKind::gatv2)), dataset);
    first.run(expected);
    for (std::size_t i = 0; i < results.size(); ++i) {
      predictors.push_back(first.for_another_thread());
      results[i] = Matrix<float>(120, 3);
    }
  }  // The first may go.
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int run = 0; run < 20; ++run) predictors[i].run(results[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Matrix<float>& logits : results) {
    for (std::int64_t i = 0; i < logits.size(); ++i) {
      ASSERT_EQ(logits.data()[i], expected.data()[i]) << i;
    }
  }
}

TEST(PredictorUses, ShareSparseFeaturesAmongThreads) {
  const Dataset dataset = test::with_sparse_features(learnable_vertices());
  Predictor first(trained_checkpoint(dataset, model_of(nn::ModelKind::gcn)), dataset);
  Predictor second = first.for_another_thread();
  Matrix<float> expected(120, 3), found(120, 3);
  first.run(expected);
  second.run(found);
  for (std::int64_t i = 0; i < found.size(); ++i) ASSERT_EQ(found.data()[i], expected.data()[i]);
}

TEST(PredictorUses, ShareNoWeightsOfFewBits) {
  const Dataset dataset = learnable_vertices();
  nn::ModelConfig config = model_of(nn::ModelKind::gcn);
  config.bits = {8};
  Predictor predictor(trained_checkpoint(dataset, config), dataset);
  expect_error(ErrorCode::invalid_argument, {"few bits"}, [&] { predictor.for_another_thread(); });
}

/// The same numbers as in memory of this process.
void expect_queued(const step::Placement& placement) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, model_of(nn::ModelKind::sage));
  PredictOptions options;
  options.placement = placement;
  options.plans.device = placement.device();
  options.features_are_normalised = true;
  Predictor predictor(checkpoint, dataset.graph, options);
  const Matrix<float> expected = all_logits(predictor, dense(dataset));
  step::Tensor x(120, 9, placement), y(120, 3, placement);
  x.upload(dense(dataset));
  for (int run = 0; run < 3; ++run) {
    y.fill(-1);
    predictor.run(std::as_const(x).as<float>(), y.as<float>(), placement.stream);
    synchronise(placement.device(), placement.stream);
    Matrix<float> found(120, 3);
    copy_bytes(found.data(), y.bytes(), static_cast<std::size_t>(y.num_bytes()),
               placement.device());
    for (std::int64_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found.data()[i], expected.data()[i]) << i;
    }
  }
}

TEST(PredictorUses, AreQueuedOnAStream) { expect_queued({}); }

TEST(PredictorUses, AreQueuedOnAStreamOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_queued({Precision::fp32, &default_memory({DeviceKind::cuda, 0}), {}});
}

TEST(PredictorUses, NormaliseNothingOnAStream) {
  const Dataset dataset = learnable_vertices();
  Predictor predictor(trained_checkpoint(dataset, model_of(nn::ModelKind::gcn)), dataset.graph);
  Matrix<float> logits(120, 3);
  expect_error(ErrorCode::invalid_argument, {"features_are_normalised"},
               [&] { predictor.run(dense(dataset), logits, Stream()); });
}

}  // namespace
}  // namespace tessera::train
